import { inspect } from 'node:util';
import { ServiceError } from '../service/errors';

const NO = 1;
const CANNOT_TELL = 2;

/**
 * Runs a task that answers a question: exit code 0 for yes, 1 for no, 2 when the question could not be answered, with the reason on
 * standard error. Hardhat's own exit code for an error is 1, which would say no.
 */
export async function withExitCode(
  { showStackTraces }: { showStackTraces: boolean },
  question: () => Promise<boolean>,
): Promise<void> {
  try {
    if (!(await question())) process.exitCode = NO;
  } catch (thrown) {
    console.error(showStackTraces || !(thrown instanceof ServiceError) ? inspect(thrown) : textOf(thrown));
    process.exitCode = CANNOT_TELL;
  }
}

function textOf({ message, code, remedy }: ServiceError): string {
  const text = `${message} [${code}]`;
  return remedy !== undefined && !message.includes(remedy) ? `${text}\n${remedy}` : text;
}
