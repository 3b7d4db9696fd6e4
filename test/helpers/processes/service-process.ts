import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { inheritedEnvironment } from '../../../service/config/config';
import { PROJECT_ROOT } from '../../../service/base/project-root';
import { eventually } from '../eventually';
import { stopLater } from '../resources';

/** The compiled service as `npm run service` starts it, in a process of its own. */
export interface ServiceProcess extends AsyncDisposable {
  url: string;
  pid: number;
  /** The output so far. */
  output(): string;
  /** Resolves with the exit code when it ends; null if a signal ended it. */
  ended: Promise<number | null>;
  /** Sends a signal and waits for the end. Returns the exit code; null if a signal ended it. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** A service that was started and may still be starting. */
export interface LaunchedService extends Omit<ServiceProcess, 'url'> {
  /** Resolves with the address when it listens; rejects with the output if it ends instead. */
  listening(): Promise<string>;
}

/**
 * - `openFiles`: limit of file descriptors. Defaults to that of the tests.
 * - `root`: folder of the installation. Defaults to this project.
 */
interface ProcessOptions {
  args?: readonly string[];
  openFiles?: number;
  root?: string;
}

/** Starts the service; rejects with the output if it ends instead of listening. */
export async function startServiceProcess(
  settings: Record<string, string>,
  options?: ProcessOptions,
): Promise<ServiceProcess> {
  const launched = launchServiceProcess(settings, options);
  const url = await launched.listening().catch(async (error: unknown) => {
    await launched.end('SIGKILL');
    throw error;
  });
  return { ...launched, url };
}

/** Starts the service and does not wait for it. */
export function launchServiceProcess(
  settings: Record<string, string>,
  options?: ProcessOptions,
): LaunchedService {
  const { child, output, ended } = spawnService(settings, options);
  const launched = {
    listening: () =>
      eventually('the service listens', () => {
        if (child.exitCode !== null) throw new Error(output());
        return /"url":"(http[^"]+)".*"msg":"listening"/.exec(output())?.[1];
      }),
    pid: child.pid ?? -1,
    output,
    ended,
    async end(signal: NodeJS.Signals) {
      child.kill(signal);
      return ended;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
  stopLater(`service process ${child.pid}`, () => launched[Symbol.asyncDispose]());
  return launched;
}

/** Starts a service that is expected to end. Returns its exit code and its output. */
export async function failToStart(
  settings: Record<string, string>,
  args: readonly string[] = [],
): Promise<{ code: number | null; output: string }> {
  const { output, ended } = spawnService(settings, { args });
  return { code: await ended, output: output() };
}

function spawnService(
  settings: Record<string, string>,
  { args = [], openFiles, root = PROJECT_ROOT }: ProcessOptions = {},
): {
  child: ChildProcess;
  output: () => string;
  ended: Promise<number | null>;
} {
  const node = [process.execPath, join(root, 'dist/service/main.js'), ...args];
  const limited = ['sh', '-c', `ulimit -n ${openFiles} && exec "$@"`, 'sh', ...node];
  const [command = '', ...rest] = openFiles === undefined ? node : limited;
  const child = spawn(command, rest, {
    cwd: root,
    env: { ...inheritedEnvironment(), PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { child, output: () => Buffer.concat(chunks).toString(), ended };
}
