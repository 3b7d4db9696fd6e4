import { messageOf, ServiceError } from '../../service/base/errors';

/**
 * Copies an error and masks the secrets in it and in its causes. Hardhat prints causes with stack traces, and
 * those of libraries contain requests with the URL and its key.
 *
 * @param code the code for errors that are not our own.
 */
export function maskedError(thrown: unknown, mask: (text: string) => string, code: string): ServiceError {
  const cause = maskedCause(thrown instanceof ServiceError ? thrown.cause : thrown, mask);
  if (!(thrown instanceof ServiceError)) {
    return new ServiceError(code, mask(messageOf(thrown)).replace(/\s*\n\s*/g, ' '), { cause });
  }
  const { remedy, retryable } = thrown;
  const options = { cause, retryable, ...(remedy !== undefined && { remedy: mask(remedy) }) };
  return new ServiceError(thrown.code, mask(thrown.message), options);
}

/** Keeps only the message and the stack. */
function maskedCause(cause: unknown, mask: (text: string) => string): Error | undefined {
  if (cause === undefined) return undefined;
  const masked = new Error(mask(messageOf(cause)));
  masked.stack = mask((cause instanceof Error && cause.stack) || masked.message);
  return masked;
}
