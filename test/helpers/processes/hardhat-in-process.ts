// The tests' own Hardhat: its plug-ins and our tasks are loaded once.
import 'hardhat';
import { HardhatArtifactResolver } from '@nomicfoundation/hardhat-ignition/helpers';
import { HardhatContext } from 'hardhat/internal/context';
import { HARDHAT } from '../../../devnet/hardhat-node';
import { inheritedEnvironment } from '../../../service/config/config';
import type { CommandAnswer } from './command-answer';
import { outputOf } from './command-output';

/** What each command loads anew: Hardhat's command line, and what depends on the settings. */
const OF_ONE_COMMAND = [
  HARDHAT,
  require.resolve('../../../hardhat.config'),
  require.resolve('../../../deploy/masked-output'),
];

let queue: Promise<unknown> = Promise.resolve();

/**
 * Runs `npx hardhat …` in this process: a process of its own needs more time to load Hardhat than most
 * commands take. Hardhat's own command line reads arguments and settings, and says how the command ended.
 * What only a process has is left out: signals, NODE_OPTIONS and NODE_EXTRA_CA_CERTS, and `--verbose`, which
 * cannot be taken back. One at a time: the settings are those of the process meanwhile.
 */
export function askHardhatInProcess(
  args: string[],
  settings: Record<string, string>,
): Promise<CommandAnswer> {
  const answer = queue.then(() => run(args, settings));
  queue = answer.catch(() => undefined);
  return answer;
}

/** The same, and gives its standard output. Rejects unless it exits with 0. */
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
  // Later: where it fails, the command line ends the process twice.
  const ended = new Promise<number>((resolve) => (end = (code) => setImmediate(resolve, code)));
  const tests = HardhatContext.getHardhatContext();
  // The same tasks and extensions; the environment is made by the command line.
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
    // For each contract Ignition would copy all of the build, which `ignition verify` alone reads.
    replace(HardhatArtifactResolver.prototype, { getBuildInfo: () => Promise.resolve(undefined) }),
  ];
  try {
    for (const path of OF_ONE_COMMAND) delete require.cache[path];
    await import(HARDHAT);
    return { code: await ended, ...printed };
  } finally {
    for (const restore of undo) restore();
  }
}

/** Changes properties, and gives what changes them back. */
function replace(object: object, changes: Record<string, unknown>): () => void {
  const before = Object.keys(changes).map((name) => [name, Reflect.get(object, name) as unknown] as const);
  Object.assign(object, changes);
  return () => void Object.assign(object, Object.fromEntries(before));
}
