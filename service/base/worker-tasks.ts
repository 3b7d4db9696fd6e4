import { once } from 'node:events';
import { MessageChannel, parentPort, type MessagePort, type TransferListItem } from 'node:worker_threads';
import {
  ChainError,
  ConfigurationError,
  RequestError,
  ServiceError,
  SignerError,
  SigningError,
  messageOf,
} from './errors';

// The messages between the service and its workers, and the worker's side of them. A worker is a thread or a
// process that answers one task at a time. Bytes that are too large for one message come before the task, or
// before its outcome, as parts.

export type ToWorker = { part: unknown } | { task: unknown };

/** `isLoaded`: the worker may be ended from now on. A thread gets the answer to its question at the port. */
export type FromWorker =
  Outcome<unknown> | { part: unknown } | { isLoaded: true } | { question: unknown; port: MessagePort };

/** An end of the channel to a process. */
interface Channel {
  send?(message: object, done: (error: Error | null) => void): boolean;
}

/** Sends a message to a process, or from one, and waits until it is sent. */
export async function sendTo(channel: Channel, message: ToWorker | FromWorker): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    channel.send?.(message, (error) => (error ? reject(error) : resolve()));
  });
}

/** Node.js copies a message in one turn: one of 50 MB would block all others for a tenth of a second. */
const PIECE_BYTES = 1024 * 1024;

export function piecesOf(bytes: Uint8Array): Uint8Array[] {
  const count = Math.ceil(bytes.length / PIECE_BYTES);
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * PIECE_BYTES, (at + 1) * PIECE_BYTES));
}

/** Sends a message to the service. */
export async function send(message: FromWorker, moved: readonly TransferListItem[] = []): Promise<void> {
  if (parentPort) parentPort.postMessage(message, moved);
  else await sendTo(process, message);
}

/**
 * Answers tasks, with the parts that came before each.
 *
 * @param movedOf the memory of a result that a thread transfers instead of copying it.
 */
export function serveTasks<Task, Part, Result>(
  work: (task: Task, parts: Part[]) => Promise<Result>,
  movedOf: (result: Result) => TransferListItem[] = () => [],
): void {
  let parts: Part[] = [];
  (parentPort ?? process).on('message', (message: { part: Part } | { task: Task }) => {
    if ('part' in message) parts.push(message.part);
    else {
      const answering = outcomeOf(work(message.task, parts));
      parts = [];
      void answering.then((outcome) => send(outcome, 'result' in outcome ? movedOf(outcome.result) : []));
    }
  });
  void send({ isLoaded: true });
}

/** Asks the service, from a thread. @throws the error of the answer. */
export async function askService<Answer>(question: unknown): Promise<Answer> {
  const { port1, port2 } = new MessageChannel();
  await send({ question, port: port2 }, [port2]);
  const [answer] = (await once(port1, 'message')) as [Outcome<Answer>];
  port1.close();
  return resultOf(answer);
}

/**
 * An error as plain values, which is all that can be sent between threads and processes. One that is not the
 * service's own has a message only.
 */
export interface TransferredError extends Partial<
  Pick<ServiceError, 'code' | 'retryable' | 'remedy' | 'reason'>
> {
  /** The place of its class in CLASSES; −1: it is of none of them. Bundles may call a class otherwise. */
  kind?: number;
  message: string;
  cause: TransferredError | undefined;
}

/** The end of a task, as plain values. */
export type Outcome<Result> = { result: Result } | { error: TransferredError };

const CLASSES = [ServiceError, ConfigurationError, RequestError, SignerError, SigningError, ChainError];

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
  const { code, retryable, remedy, reason } = error;
  const kind = CLASSES.findIndex((each) => each === error.constructor);
  return { kind, code, message, retryable, remedy, reason, cause };
}

/** Restores an error with its class. An error that was not the service's own becomes a plain Error. */
export function fromTransferredError(transferred: TransferredError): Error {
  const { kind = -1, code = 'INTERNAL', message, retryable = false, remedy, reason } = transferred;
  const cause = transferred.cause && fromTransferredError(transferred.cause);
  const ErrorClass = CLASSES[kind];
  if (!ErrorClass) return new Error(message, { cause });
  return new ErrorClass(code, message, { cause, retryable, remedy, reason });
}
