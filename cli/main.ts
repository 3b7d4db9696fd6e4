import { EXIT_CODES } from './exit-code';
import { runTdoc } from './program';
import { errorText } from './terminal/error-text';
import { maskStandardError } from './terminal/masked-output';

/** Ends with what nobody caught. Node.js would print it past the masking of standard error. */
function fail(thrown: unknown): never {
  console.error(errorText(thrown));
  process.exit(EXIT_CODES.failed);
}

try {
  // First: from here on nothing is said that holds a secret.
  maskStandardError();
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, fail);
  void runTdoc(process.argv.slice(2));
} catch (thrown) {
  fail(thrown);
}
