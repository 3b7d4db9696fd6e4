import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { systemTime, type Clock } from '../../service/base/time';
import { Refusal } from '../errors';

/** The user's terminal, if there is one. */
interface Terminal {
  input: Readable & { isTTY?: boolean };
  output: Writable;
}

/**
 * Asks the user to confirm an irreversible action by typing a word. Fails without a terminal: scripts use
 * `--yes`.
 *
 * @param unchanged message if the user does not confirm.
 * @throws Refusal CONFIRMATION_MISSING.
 */
export async function confirm(
  word: string,
  isAgreed: boolean,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
  unchanged = 'Nothing was sent',
): Promise<void> {
  if (isAgreed) return;
  const remedy = 'Run it again with --yes.';
  const refusal = (why: string): Refusal =>
    new Refusal('CONFIRMATION_MISSING', `${unchanged}: ${why}. ${remedy}`, { remedy });
  if (input.isTTY !== true) throw refusal('this cannot be undone, and there is no terminal to confirm it on');
  const lines = createInterface({ input, output });
  // Ctrl-C and Ctrl-D close the input without an answer.
  const ended = once(lines, 'close').then(() => '');
  try {
    const question = lines.question(`Type "${word}" to continue: `);
    if ((await Promise.race([question, ended])).trim() !== word) throw refusal(`"${word}" was not typed`);
  } finally {
    lines.close();
  }
}

const QUIET_MS = 2_000;

/**
 * Reports the progress of a long reading, with a hint where it ends: the first line after two seconds, then
 * one every two seconds.
 */
export function createReadingProgress(
  tell: (line: string) => void,
  hint: string,
  clock: Clock = systemTime,
): (block: number, range: { fromBlock: number; toBlock: number }) => void {
  let told = clock.now();
  return (block, { fromBlock, toBlock }) => {
    if (clock.now() - told < QUIET_MS) return;
    told = clock.now();
    const percent = Math.floor((100 * (toBlock - block + 1)) / (toBlock - fromBlock + 1));
    tell(`reading backwards, at block ${block}: at most ${fromBlock} … ${toBlock}, ${percent} % (${hint})`);
  };
}
