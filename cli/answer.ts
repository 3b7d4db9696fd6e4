import type { Command } from 'commander';
import { envFileOf } from '../service/config/config';
import { withCommandsFor } from '../service/config/tenant';
import { withExitCode } from './exit-code';
import { Refusal } from './refusal';
import { maskSecrets } from './terminal/masked-output';
import { printableJson } from './terminal/printable';

/**
 * The answer of a command: lines for people, one JSON value for programs, and whether the answer is yes
 * (undefined: not known).
 */
export interface Answer {
  lines: string[];
  json: string;
  isYes: boolean | undefined;
}

/** Prints a line of progress for people. */
export type Say = (line: string) => void;

/**
 * Runs a command and prints its answer. With `--json` standard output has one JSON value, also for a refusal,
 * but nothing if the command fails; lines for people go to standard error.
 */
export async function printAnswer(
  command: Command,
  json: boolean,
  work: (say: Say) => Promise<Answer>,
): Promise<void> {
  await withExitCode(command, async () => {
    try {
      const answer = await work((line) => (json ? console.error(line) : console.log(line)));
      for (const line of json ? [answer.json] : answer.lines) console.log(line);
      return answer.isYes;
    } catch (thrown) {
      if (!json || !(thrown instanceof Refusal)) throw thrown;
      const { code, reason } = thrown;
      const [message, remedy] = [thrown.message, thrown.remedy].map(
        (text) => text && withCommandsFor(envFileOf(), text),
      );
      console.log(maskSecrets(printableJson({ outcome: 'refused', code, reason, message, remedy })));
      return false;
    }
  });
}
