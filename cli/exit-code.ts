import { inspect } from 'node:util';
import type { Command } from 'commander';
import { Refusal } from './refusal';
import { errorText } from './terminal/error-text';

/** The exit codes of every command (docs/cli.md). */
export const EXIT_CODES = { yes: 0, no: 1, failed: 2 } as const;

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
