import { inspect } from 'node:util';
import { EXIT_CODES, type Answer, type Say } from './answer';
import type { Command } from 'commander';
import { errorText, hintFor, maskSecrets, Refusal } from './errors';
import { printableJson } from './terminal/printable';

const QUIET_MS = 2_000;

/**
 * Runs a command and sets the exit code: 0 for done or yes (true), 1 for no (false) or refused, 2 if it
 * failed or the answer is not known (undefined). The error goes to standard error, with a stack trace only on
 * request. A command that takes longer than two seconds prints a progress line.
 */
export async function withExitCode(
  command: Command,
  work: () => Promise<boolean | undefined>,
): Promise<void> {
  const timer = setTimeout(tellThatItWorks, QUIET_MS, command.name());
  try {
    const answer = await work();
    process.exitCode = answer === undefined ? EXIT_CODES.failed : EXIT_CODES[answer ? 'yes' : 'no'];
  } catch (thrown) {
    console.error(command.optsWithGlobals().stackTraces === true ? inspect(thrown) : errorText(thrown));
    process.exitCode = thrown instanceof Refusal ? EXIT_CODES.no : EXIT_CODES.failed;
  } finally {
    clearTimeout(timer);
  }
}

/** Only on a terminal: scripts read standard error too. */
function tellThatItWorks(name: string): void {
  if (process.stderr.isTTY) console.error(`${name}: still working …`);
}

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
      const lines = json ? [answer.json as string] : answer.lines;
      for (const line of lines) console.log(line);
      for (const hint of hintFor(lines.join('\n'))) console.error(hint);
      return answer.isYes;
    } catch (thrown) {
      if (!json || !(thrown instanceof Refusal)) throw thrown;
      const { code, reason, message, remedy } = thrown;
      console.log(maskSecrets(printableJson({ outcome: 'refused', code, reason, message, remedy })));
      for (const hint of hintFor(`${message} ${remedy}`)) console.error(hint);
      return false;
    }
  });
}
