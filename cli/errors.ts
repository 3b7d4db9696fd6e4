import { ConfigurationError, messageOf, ServiceError } from '../service/base/errors';
import { secretMasker } from '../service/base/mask-secrets';
import { envFileOf, knownSecrets } from '../service/config/config';
import { commandHint } from '../service/config/tenant';
import { printable } from '../service/base/printable';

/**
 * A command is not carried out: the registry would refuse it, or the user must confirm or add something.
 * Nothing was sent or removed. Exit code 1.
 */
export class Refusal extends ServiceError {}

/** The error for an argument that cannot be used: the problem, and what to do about it. */
export function invalid(problem: string, remedy?: string): ConfigurationError {
  if (remedy === undefined) return new ConfigurationError('ARGUMENT_INVALID', problem);
  return new ConfigurationError('ARGUMENT_INVALID', `${problem} ${remedy}`, { remedy });
}

/**
 * Formats an error for a user: its message, its code, and its remedy unless the message contains it. If the
 * text names a command, a tenant's user is told its ENV_FILE.
 */
export function errorLines(thrown: unknown): string[] {
  if (!(thrown instanceof ServiceError))
    return [`${messageOf(thrown)} [UNEXPECTED_ERROR]`, 'Add --stack-traces to see where it comes from.'];
  const { message, code, remedy } = thrown;
  const parts = [`${message} [${code}]`, ...(remedy && !message.includes(remedy) ? [remedy] : [])];
  return [...parts, ...hintFor(parts.join('\n'))];
}

/** The same as a text whose lines are safe for a terminal. A message may have several. */
export function errorText(thrown: unknown): string {
  return errorLines(thrown)
    .join('\n')
    .split('\n')
    .map((line) => printable(line))
    .join('\n');
}

/** The ENV_FILE that the commands in a text need, as a line. None for `.env`, and for a text without any. */
export function hintFor(text: string): string[] {
  const hint = text.includes('`npx ') ? commandHint(envFileOf()) : undefined;
  return hint === undefined ? [] : [hint];
}

let mask: ((text: string) => string) | undefined;

/**
 * Masks every secret of the settings in a text. The secrets are read once, at the start of a command: keys
 * that the command makes (`did --force`) are not among them.
 */
export function maskSecrets(text: string): string {
  mask ??= secretMasker(knownSecrets());
  return mask(text);
}

/** Masks them if they are known by now: an error may be that they cannot be read. */
export function maskKnown(text: string): string {
  return mask?.(text) ?? text;
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
