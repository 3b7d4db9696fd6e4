import { makeError } from 'ethers';
import { WebSocket, type RawData } from 'ws';

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
  const socket = new WebSocket(url, { handshakeTimeout: timeoutMs, maxPayload: 0 });
  const waiting = new Map<number, Waiting>();
  return new Promise((resolve, reject) => {
    socket.on('message', (data) => take(parse(data), waiting, onNewHead));
    // 'close' follows every 'error'.
    socket.on('error', reject);
    socket.on('close', () => {
      for (const { failed } of waiting.values()) failed(new Error('the WebSocket was closed'));
      waiting.clear();
      onClosed();
    });
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
function take(message: Message | undefined, waiting: Map<number, Waiting>, onNewHead: () => void): void {
  if (message?.method === 'eth_subscription') onNewHead();
  else if (message?.id !== undefined) waiting.get(message.id)?.answered(message);
}

interface Message {
  id?: number;
  method?: string;
}

/** Undefined for a message that is not JSON. It is ignored, because no request waits for it. */
function parse(data: RawData): Message | undefined {
  try {
    return JSON.parse((data as Buffer).toString('utf8')) as Message;
  } catch {
    return undefined;
  }
}
