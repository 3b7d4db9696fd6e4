import {
  ChainError,
  ConfigurationError,
  RequestError,
  ServiceError,
  SignerError,
  SigningError,
  messageOf,
} from '../base/errors';

/** An error as plain values, which is all that can be sent between threads. */
export interface TransferredError extends Pick<
  ServiceError,
  'code' | 'message' | 'retryable' | 'remedy' | 'reason'
> {
  /** Class name; `Error` for an error that is not the service's own. */
  name: string;
  /** The messages of its causes, the nearest first. */
  causes: string[];
}

const CLASSES = new Map(
  [ServiceError, ConfigurationError, RequestError, SignerError, SigningError, ChainError].map((each) => [
    each.name,
    each,
  ]),
);

const NOT_OURS = { name: 'Error', code: '', retryable: false, remedy: undefined, reason: undefined };

/** Converts an error to plain values. */
export function toTransferredError(error: unknown): TransferredError {
  const { name, code, retryable, remedy, reason } = error instanceof ServiceError ? error : NOT_OURS;
  return { name, code, message: messageOf(error), retryable, remedy, reason, causes: causesOf(error) };
}

/** Restores an error with its class. An error that was not the service's own becomes a plain Error. */
export function fromTransferredError(transferred: TransferredError): Error {
  const { name, code, message, retryable, remedy, reason, causes } = transferred;
  const cause = causes.reduceRight<Error | undefined>(
    (inner, text) => new Error(text, { cause: inner }),
    undefined,
  );
  const ErrorClass = CLASSES.get(name);
  if (!ErrorClass) return new Error(message, { cause });
  return new ErrorClass(code, message, {
    cause,
    retryable,
    ...(remedy !== undefined && { remedy }),
    ...(reason !== undefined && { reason }),
  });
}

/** More causes than errors have. The limit also ends a circular chain. */
const MOST_CAUSES = 10;

function causesOf(error: unknown): string[] {
  const causes: string[] = [];
  let at = error;
  while (at instanceof Error && at.cause !== undefined && causes.length < MOST_CAUSES) {
    causes.push(messageOf(at.cause));
    at = at.cause;
  }
  return causes;
}
