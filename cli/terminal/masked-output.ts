import { knownSecrets } from '../../service/config/config';
import { secretMasker } from '../../service/base/mask-secrets';

let mask: ((text: string) => string) | undefined;

/**
 * Masks every secret of the settings in a text. The secrets are read once, before anything else of a command:
 * what the command made itself (`did --force`) is not among them.
 */
export function maskSecrets(text: string): string {
  mask ??= secretMasker(knownSecrets());
  return mask(text);
}

/** Bytes as `inspect` shows them, such as the body of an answer: a secret is not recognised in them. */
const BYTES = /<Buffer [^>]*>/g;

/**
 * Masks standard error from here on. Everything that a command, Hardhat and its plugins say of errors goes
 * there: also what `--stack-traces` prints, what nobody caught, and errors of libraries with the URL of a
 * node in them. Results go to standard output, and are left as they are: to change a credential would break
 * it.
 *
 * @throws ConfigurationError when ENV_FILE cannot be read.
 */
export function maskStandardError(): void {
  mask = secretMasker(knownSecrets());
  const { stderr } = process;
  const write = stderr.write.bind(stderr) as (...args: unknown[]) => boolean;
  stderr.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    return write(maskSecrets(text.replace(BYTES, '[bytes]')), ...rest);
  };
}
