import { once } from 'node:events';
import { MessageChannel, parentPort, type MessagePort, type TransferListItem } from 'node:worker_threads';
import { outcomeOf, resultOf, type Outcome } from './transferred-error';

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
