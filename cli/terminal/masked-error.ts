import { messageOf, ServiceError } from '../../service/base/errors';

/**
 * An error without any secret, in its causes neither: Hardhat prints those too when it is asked for stacks,
 * and those of libraries hold requests, with the URL and its key.
 *
 * @param code of what is no error of ours.
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

/** Its message and its stack, and nothing else of it. */
function maskedCause(cause: unknown, mask: (text: string) => string): Error | undefined {
  if (cause === undefined) return undefined;
  const masked = new Error(mask(messageOf(cause)));
  masked.stack = mask((cause instanceof Error && cause.stack) || masked.message);
  return masked;
}
