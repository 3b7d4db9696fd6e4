import { makeError } from 'ethers';
import { WebSocket, type RawData } from 'ws';

/** Messages over one WebSocket. */
export interface SocketConnection {
  /** Resolves with the answer of this id; rejects when the connection ends or the time is up. */
  ask(id: number, message: string, timeoutMs: number): Promise<unknown>;
  close(): void;
}

interface Waiting {
  answered: (answer: unknown) => void;
  failed: (cause: Error) => void;
}

/**
 * Opens a WebSocket to a JSON-RPC node. Rejects when it cannot be opened in time.
 *
 * @param onClosed called once when it ends, for whatever reason, or could not be opened.
 */
export function openSocket(url: string, timeoutMs: number, onClosed: () => void): Promise<SocketConnection> {
  const socket = new WebSocket(url, { handshakeTimeout: timeoutMs, maxPayload: 0 });
  const waiting = new Map<number, Waiting>();
  return new Promise((resolve, reject) => {
    socket.on('message', (data) => settle(waiting, data));
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
          // A connection that swallows a request is most likely half-open: the next request gets a new one.
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
    close: () => socket.terminate(),
  };
}

function settle(waiting: Map<number, Waiting>, data: RawData): void {
  const answer = parse(data);
  if (answer?.id !== undefined) waiting.get(answer.id)?.answered(answer);
}

/** What is no JSON-RPC answer is ignored: nobody waits for it. */
function parse(data: RawData): { id?: number } | undefined {
  try {
    return JSON.parse((data as Buffer).toString('utf8')) as { id?: number };
  } catch {
    return undefined;
  }
}
