import { reachDistantHosts } from '../service/base/distant-hosts';
import { systemTime } from '../service/base/time';
import { EXIT_CODES, tell } from './answer';
import { errorLines, maskStandardError } from './errors';
import { runTdoc } from './program';

/** Ends the process after an uncaught error. Node.js itself would print it unmasked. */
function fail(thrown: unknown): never {
  errorLines(thrown).forEach(tell);
  process.exit(EXIT_CODES.failed);
}

try {
  // Must run first: no later output may contain a secret.
  maskStandardError();
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, fail);
  reachDistantHosts();
  void runTdoc(process.argv.slice(2), systemTime);
} catch (thrown) {
  fail(thrown);
}
