import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { inheritedEnvironment } from '../service/config/config';
import { PROJECT_ROOT } from '../service/base/project-root';

/** A Node.js child process. The caller must stop it. */
export type Child = ReturnType<typeof startChild>;

/** Plain JavaScript, never compiled: the same file serves the sources and `dist/`. */
const END_WITH_PARENT = join(PROJECT_ROOT, 'devnet/end-with-parent.cjs');
const TAIL_LINES = 30;
const KILL_AFTER_MS = 12_000;

/**
 * Starts a script with Node.js, by default in the project's folder.
 *
 * @param settings environment variables added to the inherited environment, from which every setting of this
 *   project is removed.
 * @param logFile receives all of its output.
 */
export function startChild(
  name: string,
  script: string,
  args: string[],
  settings: Record<string, string>,
  logFile?: string,
  cwd = PROJECT_ROOT,
) {
  const child = spawn(process.execPath, ['--require', END_WITH_PARENT, script, ...args], {
    cwd,
    env: { ...inheritedEnvironment(), ...settings },
    // The channel carries no messages: its end tells the child that this process has ended.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // In a group of its own: Ctrl-C reaches this process only, which ends the programs in their order. On
    // Windows a detached child would get a window.
    detached: process.platform !== 'win32',
  });
  const lines: string[] = [];
  const output = new EventEmitter().setMaxListeners(0);
  const log = logFile === undefined ? undefined : createWriteStream(logFile, { mode: 0o600 });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      log?.write(`${line}\n`);
      output.emit('line', line);
    });
  }
  const ended = once(child, 'close').then(([code]) => {
    log?.end();
    return code as number | null;
  });
  return {
    /** Resolves with the exit code when it has ended; null if a signal ended it. */
    ended,
    /** Calls the listener with every line of output from now on. */
    onLine: (listener: (line: string) => void): void => void output.on('line', listener),
    /** Resolves with the first line, past or future, that matches. Rejects if the program ends before. */
    lineMatching: (pattern: RegExp): Promise<RegExpExecArray> =>
      new Promise((resolve, reject) => {
        const look = (line: string): void => {
          const match = pattern.exec(line);
          if (match) resolve(match);
        };
        lines.forEach(look);
        output.on('line', look);
        const tail = (): string => (logFile === undefined ? `\n${lines.slice(-TAIL_LINES).join('\n')}` : '');
        void ended.then(() => reject(new Error(`${name} ended.${tail()}`)));
      }),
    /** Ends it with SIGKILL, without waiting for the end. */
    kill: (): void => void child.kill('SIGKILL'),
    /** Ends it with SIGTERM, and with SIGKILL if that does not help within the time, by default 12 s. */
    async stop(killAfterMs = KILL_AFTER_MS): Promise<void> {
      child.kill('SIGTERM');
      const patience = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
      await ended;
      clearTimeout(patience);
    },
    /** Lets this process end first; the child then ends too. */
    unref(): void {
      child.unref();
      child.channel?.unref();
      for (const stream of [child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref();
    },
  };
}
