import codes from './error-codes.json';

/** A stable code of an error. `npm run openapi` writes the table into docs/error-codes.md. */
export type ErrorCode = keyof typeof codes;

/** The meaning of a code. The texts are Markdown, in half sentences. */
export interface ErrorMeaning {
  /** The statuses of answers with the code; a RequestError has the first one by default. */
  readonly status?: readonly number[];
  /** Where it appears besides answers. */
  readonly where?: string;
  readonly retryable: 'yes' | 'no' | 'depends' | 'unknown';
  readonly why: string;
  readonly remedy?: string;
  /** For a 500: the one who has to act. `nobody`: send the request again later. By default the operator. */
  readonly actor?: 'caller' | 'nobody';
}

export const ERROR_CODES = codes as Readonly<Record<ErrorCode, ErrorMeaning>>;

/** Undefined for the code of a process, or of a service, that is newer than this one. */
export function meaningOf(code: string): ErrorMeaning | undefined {
  return (ERROR_CODES as Readonly<Record<string, ErrorMeaning | undefined>>)[code];
}

type ServiceErrorOptions = Partial<Pick<ServiceError, 'cause' | 'retryable' | 'remedy' | 'reason'>>;

/**
 * Base of every error that this project throws on purpose. `retryable`: the same call may succeed later
 * without any change, by default as the table of codes says. `remedy`: what a person can do about it.
 */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly remedy: string | undefined;
  /** The name of the contract's own error, where a contract refused. */
  readonly reason: string | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.retryable = options.retryable ?? meaningOf(code)?.retryable === 'yes';
    this.remedy = options.remedy;
    this.reason = options.reason;
  }
}

/** A setting is missing or wrong. Found at start wherever possible; the message names the setting. */
export class ConfigurationError extends ServiceError {}

/**
 * The request cannot be answered as it is. Its message is sent to the caller, unless the status is 500. It
 * names the field of a body as a JSON pointer. By default it is not retryable, even if its code is.
 */
export class RequestError extends ServiceError {
  /** The status of the answer, by default the first one of the code, or 500. */
  readonly status: number;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions & { status?: number } = {}) {
    super(code, message, { retryable: false, ...options });
    this.status = options.status ?? meaningOf(code)?.status?.[0] ?? 500;
  }
}

/** The credential could not be built or signed. Nothing has been sent to the chain. */
export class SigningError extends ServiceError {}

/** The chain refused, or could not be reached. */
export class ChainError extends ServiceError {}

/** The remote signer of a key does not answer, refuses, or gives a wrong answer. Nothing was sent. */
export class SignerError extends ServiceError {}

/** It cannot be done now, and can be later. Its message is sent to the caller. */
export class UnavailableError extends ServiceError {
  /** Milliseconds after which to ask again. */
  readonly retryAfterMs: number;

  constructor(code: ErrorCode, message: string, options: { retryAfterMs: number; cause?: unknown }) {
    super(code, message, { ...options, retryable: true });
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** A caller, or an account, asks too often. Answered with 429. */
export class TooOftenError extends UnavailableError {}

/** Too many requests are waiting already. */
export class BusyError extends UnavailableError {
  constructor(message: string, retryAfterMs: number) {
    super('BUSY', message, { retryAfterMs });
  }
}

/** The place from which a client goes on is not kept any more. Its message is sent to the caller. */
export class CursorExpiredError extends RequestError {
  /** @param cursor the first one that goes on. */
  constructor(readonly cursor: string) {
    const remedy = 'Go on with the member cursor of this answer.';
    const message = `Events after this cursor were removed, because they were old. ${remedy}`;
    super('CURSOR_EXPIRED', message, { remedy });
  }
}

/** The caller has closed the connection; no answer can be sent. */
export class CallerLeftError extends ServiceError {
  constructor() {
    super('CALLER_LEFT', 'The caller closed the connection before the answer.');
  }
}

/** The text of anything that was thrown, for a log line. */
export function messageOf(thrown: unknown): string {
  // Connecting to a name with several addresses fails with an AggregateError, which has no message.
  if (thrown instanceof AggregateError && thrown.message === '')
    return thrown.errors.map(messageOf).join('; ');
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Characters of a message that is shown. */
export const LONGEST_MESSAGE = 2_000;

/**
 * A text for a reader, with at most this many characters: what others wrote may be of any length. The middle
 * is left out, because a message begins with its subject and ends with its remedy. Mask secrets before.
 */
export function cut(text: string, longest = 256): string {
  if (text.length <= longest) return text;
  const half = Math.floor(longest / 2);
  // Half of a surrogate pair is no character.
  const [first, last] = [text.slice(0, half).replace(/[\ud800-\udbff]$/, ''), text.slice(1 - half)];
  return `${first}…${last.replace(/^[\udc00-\udfff]/, '')}`;
}

/** The `code` property that Node.js, ethers and our own errors carry, if this one does. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null || !('code' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}

/** The result of a function; undefined if it throws. */
export function orUndefined<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

const TRUST = 'let it send its whole chain, or name its authority in NODE_EXTRA_CA_CERTS';
/** Failures of connections, by the code or the text of Node.js, OpenSSL, undici or pg; and their meaning. */
const MEANINGS: readonly [RegExp, string][] = [
  [/WRONG_VERSION|PACKET_LENGTH_TOO_LONG/, 'it speaks http there, not https: correct the scheme or port'],
  [/NO_APPLICATION_PROTOCOL/, 'it speaks no HTTP/1.1 there: enable that beside HTTP/2'],
  [/CERTIFICATE_REQUIRED|BAD_CERTIFICATE/, 'it wants a client certificate, and gets none: let it do without'],
  [/HANDSHAKE_FAILURE/, 'it refuses TLS: it wants a client certificate, or other ciphers'],
  [/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/, 'it has no TLS 1.2 or 1.3: enable one'],
  [/SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/, `nobody trusted signed its certificate: ${TRUST}`],
  [/CERT_HAS_EXPIRED/, 'its certificate has expired: renew it'],
  [/ALTNAME_INVALID/, 'its certificate is of another name: use a name that is in the certificate'],
  [/other side closed/, 'it closed the connection: it may speak https there, or want a client certificate'],
  [/no encryption|SSL off/, 'it wants TLS: add sslmode=verify-full to the URL'],
  [/does not support SSL/, 'it has no TLS: enable ssl there, or write sslmode=disable in the URL'],
];

/** Why a connection failed: its meaning, if that is known, and the words of the library. */
export function connectionProblem(cause: unknown): string {
  const words = messageOf(cause).trim() || `${codeOf(cause)}`;
  const [, meaning] = MEANINGS.find(([pattern]) => pattern.test(`${codeOf(cause)} ${words}`)) ?? [];
  return meaning === undefined ? words : `${meaning} (${words})`;
}
