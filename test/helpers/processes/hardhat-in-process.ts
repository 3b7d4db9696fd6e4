// Hardhat's plug-ins and our tasks are loaded once, for the tests and all commands.
import '../chain/in-process-chain';
import { TASK_COMPILE } from 'hardhat/builtin-tasks/task-names';
import { HardhatContext } from 'hardhat/internal/context';
import { hardhatCli } from '../../../devnet/hardhat-node';
import { inheritedEnvironment } from '../../../service/config/config';
import type { CommandAnswer } from './command-answer';
import { outputOf } from './command-output';
import { replace } from './tdoc-in-process';

const HARDHAT = hardhatCli();

/** Modules that each command loads again: Hardhat's command line, and those that depend on settings. */
const OF_ONE_COMMAND = [HARDHAT, require.resolve('../../../hardhat.config')];

// The build has compiled the contracts. To find that nothing changed takes a third of a command's time.
HardhatContext.getHardhatContext().tasksDSL.task(TASK_COMPILE, () => Promise.resolve());

let queue: Promise<unknown> = Promise.resolve();

/**
 * Runs `npx hardhat …` in this process, because loading Hardhat in a new process takes longer than most
 * commands. Hardhat's own command line reads arguments and settings, and sets the exit code. Not supported:
 * signals, NODE_OPTIONS, NODE_EXTRA_CA_CERTS, and `--verbose`, which cannot be undone. Only one command may
 * run at a time, because the process has its settings meanwhile.
 */
export function askHardhatInProcess(
  args: string[],
  settings: Record<string, string>,
): Promise<CommandAnswer> {
  const answer = queue.then(() => run(args, settings));
  queue = answer.catch(() => undefined);
  return answer;
}

/** The same, but returns its standard output. Rejects unless it exits with 0. */
export const hardhatInProcess = outputOf(askHardhatInProcess);

async function run(args: string[], settings: Record<string, string>): Promise<CommandAnswer> {
  const printed = { stdout: '', stderr: '' };
  const into = (stream: keyof typeof printed) => ({
    write(chunk: string | Uint8Array): boolean {
      printed[stream] += Buffer.from(chunk).toString();
      return true;
    },
  });
  let end: (code: number) => void;
  // Resolved later: when it fails, the command line ends the process twice.
  const ended = new Promise<number>((resolve) => (end = (code) => setImmediate(resolve, code)));
  const tests = HardhatContext.getHardhatContext();
  // The same tasks and extensions. The command line makes its own environment.
  const context = Object.assign(new HardhatContext(), tests, { environment: undefined });
  const undo = [
    replace(process, {
      env: { ...inheritedEnvironment(), ...settings },
      argv: [process.execPath, HARDHAT, ...args],
      exitCode: undefined,
      exit: (code = process.exitCode) => end(Number(code ?? 0)),
    }),
    replace(process.stdout, into('stdout')),
    replace(process.stderr, into('stderr')),
    replace(globalThis, { __hardhatContext: context }),
    replace(HardhatContext, { createHardhatContext: () => context }),
  ];
  try {
    for (const path of OF_ONE_COMMAND) delete require.cache[path];
    await import(HARDHAT);
    return { code: await ended, ...printed };
  } finally {
    for (const restore of undo) restore();
  }
}
