import { channel } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { WebSocket } from 'ws';

/** Told of real work. */
interface Marks {
  begin(): void;
  end(): void;
}

/** Requests under way over one connection: their ends, by id. */
type Requests = Map<unknown, () => void>;

/** Node.js publishes each request of its own HTTP client here; a WebSocket begins with one. */
const STARTS = 'http.client.request.start';

/**
 * Marks the opening of each WebSocket of this process, and each of its requests of JSON-RPC until the answer
 * with its id, or the end of the connection. The result ends it.
 */
export function markSockets(marks: Marks): () => void {
  const connections = new WeakMap<WebSocket, Requests>();

  const opening = (message: unknown): void => {
    const { request } = message as { request: ClientRequest };
    if (request.getHeader('upgrade') !== 'websocket') return;
    marks.begin();
    // Each virtual time of the process listens.
    request.setMaxListeners(0).once('close', () => marks.end());
  };

  const requestsOf = (socket: WebSocket): Requests => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const requests: Requests = new Map();
    connections.set(socket, requests);
    socket.setMaxListeners(0);
    socket.on('message', (data) => requests.get(idOf(data))?.());
    socket.on('close', () => requests.forEach((end) => end()));
    return requests;
  };

  const { prototype } = WebSocket;
  const send = Reflect.get(prototype, 'send') as (...given: unknown[]) => void;
  prototype.send = function (this: WebSocket, ...given: unknown[]): void {
    // The server's side of a connection has no URL.
    if (this.url) {
      const id = idOf(given[0]);
      const requests = requestsOf(this);
      marks.begin();
      requests.set(id, () => {
        requests.delete(id);
        marks.end();
      });
    }
    Reflect.apply(send, this, given);
  };
  channel(STARTS).subscribe(opening);
  return () => {
    channel(STARTS).unsubscribe(opening);
    prototype.send = send;
  };
}

function idOf(message: unknown): unknown {
  return (JSON.parse(String(message)) as { id?: unknown }).id;
}
