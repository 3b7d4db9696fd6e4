import {
  ChainError,
  ConfigurationError,
  RequestError,
  ServiceError,
  SignerError,
  SigningError,
  messageOf,
} from './errors';

/**
 * An error as plain values, which is all that can be sent between threads and processes. One that is not the
 * service's own has a message only.
 */
export interface TransferredError extends Partial<
  Pick<ServiceError, 'name' | 'code' | 'retryable' | 'remedy' | 'reason'>
> {
  message: string;
  cause: TransferredError | undefined;
}

/** The end of a task, as plain values. */
export type Outcome<Result> = { result: Result } | { error: TransferredError };

const CLASSES = new Map(
  [ServiceError, ConfigurationError, RequestError, SignerError, SigningError, ChainError].map((each) => [
    each.name,
    each,
  ]),
);

/** More causes than errors have. The limit also ends a circular chain. */
const MOST_CAUSES = 10;

export async function outcomeOf<Result>(work: Promise<Result>): Promise<Outcome<Result>> {
  return work.then(
    (result) => ({ result }),
    (error: unknown) => ({ error: toTransferredError(error) }),
  );
}

/** @throws the error, with its class. */
export function resultOf<Result>(outcome: Outcome<Result>): Result {
  if ('error' in outcome) throw fromTransferredError(outcome.error);
  return outcome.result;
}

/** Converts an error, and so many of its causes, to plain values. */
export function toTransferredError(error: unknown, causes = MOST_CAUSES): TransferredError {
  const hasCause = error instanceof Error && error.cause !== undefined && causes > 0;
  const cause = hasCause ? toTransferredError(error.cause, causes - 1) : undefined;
  const message = messageOf(error);
  if (!(error instanceof ServiceError)) return { message, cause };
  const { name, code, retryable, remedy, reason } = error;
  return { name, code, message, retryable, remedy, reason, cause };
}

/** Restores an error with its class. An error that was not the service's own becomes a plain Error. */
export function fromTransferredError(transferred: TransferredError): Error {
  const { name = '', code = '', message, retryable = false, remedy, reason } = transferred;
  const cause = transferred.cause && fromTransferredError(transferred.cause);
  const ErrorClass = CLASSES.get(name);
  if (!ErrorClass) return new Error(message, { cause });
  return new ErrorClass(code, message, { cause, retryable, remedy, reason });
}
