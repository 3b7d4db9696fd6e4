import { knownSecrets } from '../../service/config/config';
import { secretMasker } from '../../service/base/mask-secrets';

let mask: ((text: string) => string) | undefined;

/**
 * Masks every secret of the settings in a text. The secrets are read once, at the start of a command: keys
 * that the command makes (`did --force`) are not among them.
 */
export function maskSecrets(text: string): string {
  mask ??= secretMasker(knownSecrets());
  return mask(text);
}

/** Bytes as `inspect` prints them, such as a response body. Secrets in them could not be recognised. */
const BYTES = /<Buffer [^>]*>/g;

/**
 * Masks standard error from now on: the errors of commands, Hardhat and plugins, stack traces, uncaught
 * errors, and library errors that contain a node's URL. Standard output is not masked: changing a credential
 * would break it.
 *
 * @throws ConfigurationError if ENV_FILE cannot be read.
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
