import { makeError } from 'ethers';
import { WebSocket } from 'ws';
import { codeOf } from '../base/errors';
import { AnswerTooLargeError, LARGEST_ANSWER_BYTES, malformed, parseAnswer } from './rpc-answer';

/** Requests and answers over one WebSocket. */
export interface SocketConnection {
  /** Resolves with the answer that has this id; rejects when the connection ends or `timeoutMs` is over. */
  ask(id: number, message: string, timeoutMs: number): Promise<unknown>;
  /** Sends without waiting for an answer. */
  tell(message: string): void;
  close(): void;
}

/** Callbacks of a connection. */
export interface SocketListeners {
  /** Called once when the connection ends for any reason, or could not be opened. */
  onClosed: () => void;
  /** Called for each notification of a new block. */
  onNewHead: () => void;
}

interface Waiting {
  answered: (answer: unknown) => void;
  failed: (cause: Error) => void;
}

/** Opens a WebSocket to a JSON-RPC node. Rejects when it cannot be opened in time. */
export function openSocket(
  url: string,
  timeoutMs: number,
  { onClosed, onNewHead }: SocketListeners,
): Promise<SocketConnection> {
  const socket = new WebSocket(url, { handshakeTimeout: timeoutMs, maxPayload: LARGEST_ANSWER_BYTES });
  const waiting = new Map<number, Waiting>();
  let isEnded = false;
  const end = (cause: Error): void => {
    if (isEnded) return;
    isEnded = true;
    for (const { failed } of waiting.values()) failed(cause);
    waiting.clear();
    onClosed();
    socket.terminate();
  };
  return new Promise((resolve, reject) => {
    socket.on('message', (data) => {
      try {
        take(parseAnswer(data as Buffer) as Message, waiting, onNewHead);
      } catch (cause) {
        // The message may answer any of the requests.
        end(cause instanceof AnswerTooLargeError ? cause : malformed('a request'));
      }
    });
    // 'close' follows every 'error'.
    socket.on('error', (cause) => {
      if (codeOf(cause) === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') end(new AnswerTooLargeError());
      reject(cause);
    });
    socket.on('close', () => end(new Error('the WebSocket was closed')));
    socket.on('open', () => resolve(connection(socket, waiting)));
  });
}

function connection(socket: WebSocket, waiting: Map<number, Waiting>): SocketConnection {
  return {
    ask: (id, message, timeoutMs) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(id);
          const message = `no answer over the WebSocket within ${timeoutMs} ms`;
          const timeout: Error = makeError(message, 'TIMEOUT', { operation: 'ask', reason: 'timeout' });
          reject(timeout);
          // A connection that does not answer a request is most likely half-open. The next request opens a
          // new one.
          socket.terminate();
        }, timeoutMs);
        const settled = (): void => {
          clearTimeout(timer);
          waiting.delete(id);
        };
        waiting.set(id, {
          answered: (answer) => (settled(), resolve(answer)),
          failed: (cause) => (settled(), reject(cause)),
        });
        socket.send(message);
      }),
    tell: (message) => socket.send(message),
    close: () => socket.terminate(),
  };
}

/** Dispatches a message. The only subscription is the one to new blocks. */
function take(message: Message | null, waiting: Map<number, Waiting>, onNewHead: () => void): void {
  if (message?.method === 'eth_subscription') onNewHead();
  else if (message?.id !== undefined) waiting.get(message.id)?.answered(message);
}

interface Message {
  id?: number;
  method?: string;
}
