import { join } from 'node:path';
import { ServiceError } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import { startChild, type Child } from './child-process';

/** The service of the present build in a process of its own, which can be restarted. */
export interface ServiceProcess {
  url: string;
  /** Ends the service and starts the present build. Rejects if it does not start, or after `stop`. */
  restart(): Promise<void>;
  /** Resolves if the service has started and ends without `stop` or `restart`. */
  endedByItself: Promise<void>;
  stop(): Promise<void>;
}

/** Starts the service with these settings and waits until it listens. */
export async function startServiceProcess(
  settings: Record<string, string>,
  logFile: string,
): Promise<ServiceProcess> {
  let running: Child | undefined;
  let isStopped = false;
  let restarting: Promise<unknown> = Promise.resolve();
  let report = (): void => undefined;
  const endedByItself = new Promise<void>((resolve) => (report = resolve));
  const start = async (): Promise<string> => {
    const child = startChild('service', join(PROJECT_ROOT, 'dist/service/main.js'), [], settings, logFile);
    running = child;
    const [, port = ''] = await child.lineMatching(/"url":"http:[^"]*:(\d+)".*"msg":"listening"/);
    void child.ended.then(() => running === child && report());
    return `http://localhost:${port}`;
  };
  const end = async (): Promise<void> => {
    const before = running;
    running = undefined;
    await before?.stop();
  };
  try {
    return {
      url: await start(),
      endedByItself,
      restart() {
        const done = restarting.then(async () => {
          await end();
          if (isStopped) throw new ServiceError('DEVNET_FAILED', 'The devnet was stopped.');
          await start();
        });
        restarting = done.catch(() => undefined);
        return done;
      },
      async stop() {
        isStopped = true;
        await end();
        await restarting;
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}
