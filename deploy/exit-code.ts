import { inspect } from 'node:util';
import { ServiceError } from '../service/errors';
import { textOf } from './task-error';

const NO = 1;
const CANNOT_TELL = 2;

/**
 * Runs a task that answers a question: exit code 0 for yes (true), 1 for no, 2 when it could not be answered
 * (undefined, or an error, whose reason goes to standard error). Hardhat's own exit code for an error is 1,
 * which would say no.
 */
export async function withExitCode(
  { showStackTraces }: { showStackTraces: boolean },
  question: () => Promise<boolean | undefined>,
): Promise<void> {
  try {
    const answer = await question();
    if (answer !== true) process.exitCode = answer === undefined ? CANNOT_TELL : NO;
  } catch (thrown) {
    console.error(showStackTraces || !(thrown instanceof ServiceError) ? inspect(thrown) : textOf(thrown));
    process.exitCode = CANNOT_TELL;
  }
}
