import { knownSecrets } from '../service/config';
import { secretMasker } from '../service/secrets';
import { readable } from './task-error';

/**
 * Masks every secret of the settings in a text. Made once, before anything else of a command: what it made
 * itself (`did --force`) is not among them.
 */
export const maskSecrets = secretMasker(secretsOrEnd());

/**
 * As `inspect` shows them, such as the body of an answer: a secret is not known again in them, and nobody
 * reads them.
 */
const BYTES = /<Buffer [^>]*>/g;

maskStandardError();

function secretsOrEnd(): string[] {
  try {
    return knownSecrets();
  } catch (thrown) {
    throw readable(thrown);
  }
}

/**
 * Everything that a command, Hardhat and its plugins say of errors goes to standard error: also what
 * `--show-stack-traces` and `--verbose` print, what nobody caught (Hardhat's source-map-support prints it
 * there), and errors of libraries with the URL of a node in them. Results go to standard output, and are left
 * as they are: to change a credential would break it.
 */
function maskStandardError(): void {
  const { stderr } = process;
  const write = stderr.write.bind(stderr) as (...args: unknown[]) => boolean;
  stderr.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    return write(maskSecrets(text.replace(BYTES, '[bytes]')), ...rest);
  };
}
