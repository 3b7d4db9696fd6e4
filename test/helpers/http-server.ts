import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { owned } from './resources';

/** A server of this machine. */
export interface TestServer extends AsyncDisposable {
  url: string;
  port: number;
  /** Closes open connections too. */
  close(this: void): Promise<void>;
}

/** Starts a server, on a free port unless one is given. */
export async function serve(listener: RequestListener, atPort = 0): Promise<TestServer> {
  const server = createServer(listener).listen(atPort, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return owned(`server on ${url}`, { url, port, close }, 'close');
}
