import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { inheritedEnvironment } from '../../../service/config/config';
import { PROJECT_ROOT } from '../../../service/base/project-root';
import { eventually } from '../eventually';
import { stopLater } from '../resources';

/** The command that runs the compiled program. */
export const RECEIVER = [process.execPath, join(PROJECT_ROOT, 'dist/receiver/main.js')];

/** The compiled receiver in a process of its own. */
export interface ReceiverProcess {
  /** Resolves with the address when it listens; rejects with the output if it ends instead. */
  listening(this: void): Promise<string>;
  pid: number;
  /** Its output, as JSON. */
  lines(this: void): Record<string, unknown>[];
  output(this: void): string;
  errors(this: void): string;
  /** Resolves with the exit code; null when a signal ended it. */
  ended: Promise<number | null>;
  kill(this: void, signal: NodeJS.Signals): void;
}

/** Starts the receiver in `folder` with these settings, on a free port. */
export function startReceiverProcess(
  folder: string,
  settings: Record<string, string>,
  command = RECEIVER,
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
  const ended = once(child, 'close').then(([code]) => code as number | null);
  stopLater(`receiver process ${child.pid}`, () => {
    child.kill('SIGKILL');
    return ended;
  });
  const lines = (): Record<string, unknown>[] => {
    const whole = output.split('\n').slice(0, -1);
    return whole.map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  return {
    listening: () =>
      eventually('the receiver listens', () => {
        if (child.exitCode !== null) throw new Error(errors);
        return lines().find((line) => 'listening' in line)?.listening as string | undefined;
      }),
    pid: child.pid ?? -1,
    lines,
    output: () => output,
    errors: () => errors,
    ended,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
  };
}
