import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { inheritedEnvironment } from '../../../service/config/config';
import { PROJECT_ROOT } from '../../../service/base/project-root';
import { eventually } from '../eventually';
import { track } from '../resources';

/** The compiled program. */
export const RECEIVER_ENTRY = join(PROJECT_ROOT, 'dist/receiver/main.js');

/** The compiled receiver in a process of its own. */
export interface ReceiverProcess {
  /** Resolves with the address when it listens; rejects with the output if it ends instead. */
  listening(): Promise<string>;
  /** The lines of its standard output, parsed. */
  lines(): Record<string, unknown>[];
  /** Its standard output, and its standard error. */
  output(): string;
  errors(): string;
  /** Resolves with the exit code; null when a signal ended it. */
  ended: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts the receiver in `folder` with these settings, on a free port. */
export function startReceiverProcess(
  folder: string,
  settings: Record<string, string>,
  command: string[] = [process.execPath, RECEIVER_ENTRY],
): ReceiverProcess {
  const child = spawn(command[0] ?? '', command.slice(1), {
    cwd: folder,
    env: { ...inheritedEnvironment(), RECEIVER_PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const untrack = track(`receiver process ${child.pid}`);
  const ended = once(child, 'close').then(([code]) => {
    untrack();
    return code as number | null;
  });
  const lines = (): Record<string, unknown>[] =>
    output
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  return {
    listening: () =>
      eventually('the receiver listens', () => {
        if (child.exitCode !== null) throw new Error(errors);
        return lines().find((line) => 'listening' in line)?.listening as string | undefined;
      }),
    lines,
    output: () => output,
    errors: () => errors,
    ended,
    kill: (signal) => void child.kill(signal),
  };
}

/**
 * The command that starts the receiver with files limited to 512 bytes, which simulates a full disk.
 */
export function onSmallDisk(): string[] {
  return ['sh', '-c', 'ulimit -f 1; exec "$0" "$@"', process.execPath, RECEIVER_ENTRY];
}
