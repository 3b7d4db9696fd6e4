import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { own } from './owned';

/** What becomes of one JSON-RPC call. */
export type Fault =
  /** It goes through. */
  | 'none'
  /** The connection breaks before the node hears of it. */
  | 'drop request'
  /** The node answers, and the connection breaks before the caller hears of it. */
  | 'drop answer';

/** A proxy in front of a node that can fail like a network. */
export interface RpcProxy {
  url: string;
  /** Methods called, in order. */
  calls: string[];
  /** How many calls wait for their answers. */
  waiting(): number;
  close(): Promise<void>;
}

/** Starts a proxy; `decide` is asked for each call. */
export async function startRpcProxy(nodeUrl: string, decide: (method: string) => Fault): Promise<RpcProxy> {
  const calls: string[] = [];
  let waiting = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const { method } = JSON.parse(body) as { method: string };
      calls.push(method);
      waiting++;
      response.on('close', () => waiting--);
      const fault = decide(method);
      if (fault === 'drop request') {
        request.socket.destroy();
        return;
      }
      fetch(nodeUrl, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
        .then((answer) => answer.text())
        .then((text) => (fault === 'drop answer' ? request.socket.destroy() : response.end(text)))
        .catch(() => request.socket.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const disown = own(`proxy on ${url}`);
  return {
    url,
    calls,
    waiting: () => waiting,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      disown();
    },
  };
}
