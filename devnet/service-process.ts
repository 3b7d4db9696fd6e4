import { join } from 'node:path';
import { PROJECT_ROOT } from '../service/base/project-root';
import { startChild, type Child } from './child-process';

/** The service of the present build in a process of its own, which can be restarted. */
export interface ServiceProcess {
  url: string;
  /**
   * Ends the service and starts the present build. After the first call, a service that ends by itself is no
   * longer reported by `endedByItself`.
   */
  restart(): Promise<void>;
  /** Resolves if the first process ends without `stop` or `restart`. */
  endedByItself: Promise<void>;
  stop(): Promise<void>;
}

/** Starts the service with these settings and waits until it listens. */
export async function startServiceProcess(
  settings: Record<string, string>,
  logFile: string,
): Promise<ServiceProcess> {
  let running: Child | undefined;
  const start = async (): Promise<Child> => {
    running = startChild('service', join(PROJECT_ROOT, 'dist/service/main.js'), [], settings, logFile);
    return running;
  };
  const stop = async (): Promise<void> => {
    const before = running;
    running = undefined;
    await before?.stop();
  };
  const listening = async (child: Child): Promise<string> => {
    const [, port = ''] = await child.lineMatching(/"url":"http:[^"]*:(\d+)".*"msg":"listening"/);
    return `http://localhost:${port}`;
  };
  const first = await start();
  const endedByItself = new Promise<void>((resolve) => {
    void first.ended.then(() => running === first && resolve());
  });
  try {
    return {
      url: await listening(first),
      endedByItself,
      async restart() {
        await stop();
        await listening(await start());
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
