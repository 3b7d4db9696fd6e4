import {
  ChainError,
  ConfigurationError,
  RequestError,
  ServiceError,
  SigningError,
  messageOf,
} from '../base/errors';

/** What is left of an error on its way from one thread to another, which takes plain values only. */
export interface TransferredError {
  /** The class's name, if it is one of the service's. */
  name: string;
  code: string;
  message: string;
  retryable: boolean;
  remedy: string | undefined;
  reason: string | undefined;
  /** The messages of what caused it, the nearest first. */
  causes: string[];
}

const CLASSES = new Map(
  [ServiceError, ConfigurationError, RequestError, SigningError, ChainError].map((each) => [each.name, each]),
);

const NOT_OURS = { name: 'Error', code: '', retryable: false, remedy: undefined, reason: undefined };

/** Takes an error apart. */
export function toTransferredError(error: unknown): TransferredError {
  const { name, code, retryable, remedy, reason } = error instanceof ServiceError ? error : NOT_OURS;
  return { name, code, message: messageOf(error), retryable, remedy, reason, causes: causesOf(error) };
}

/** Puts it together again, of the same class; what was no error of the service is a plain Error. */
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

/** More than errors have: a chain that comes back to itself ends, too. */
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
