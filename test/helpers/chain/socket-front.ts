import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { LARGEST_ANSWER_BYTES } from '../../../service/chain/node-errors';
import { stopLater } from '../resources';

const TOO_LARGE = Buffer.alloc(LARGEST_ANSWER_BYTES + 1, ' ');

/** A node over WebSocket. */
export interface SocketFront {
  url: string;
  /** Tells each connection of a new block. */
  report(this: void, head: unknown): void;
  /** Sends each connection a message. */
  say(this: void, message: object): void;
}

/** Starts a node over WebSocket: it passes requests on to a node over HTTP, and its answers back. */
export async function startSocketFront(nodeUrl: string): Promise<SocketFront> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  stopLater('the node over WebSocket', async () => {
    for (const socket of server.clients) socket.terminate();
    server.close();
    await once(server, 'close');
  });
  server.on('connection', (socket) => {
    socket.on('message', (body) => {
      const headers = { 'Content-Type': 'application/json' };
      fetch(nodeUrl, { method: 'POST', headers, body: (body as Buffer).toString() })
        .then(async (answer) => {
          // Decoding a BOMB takes a second of processor time; the caller reads only its length.
          if (answer.headers.get('content-encoding') === null) return socket.send(await answer.text());
          await answer.body?.cancel();
          socket.send(TOO_LARGE, { binary: false });
        })
        .catch(() => socket.terminate());
    });
  });
  const say = (message: object): void => {
    for (const socket of server.clients) socket.send(JSON.stringify(message));
  };
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    report: (result) => say({ jsonrpc: '2.0', method: 'eth_subscription', params: { result } }),
    say,
  };
}
