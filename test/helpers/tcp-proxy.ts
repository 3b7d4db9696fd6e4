import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { own } from './owned';

/** A proxy that knows nothing of what passes through, and can cut it off. */
export interface TcpProxy {
  port: number;
  /** Breaks every connection; gives how many there were. */
  cut(): number;
  close(): Promise<void>;
}

/** Starts a proxy in front of a port of 127.0.0.1. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    open.add(client);
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(client);
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const disown = own(`proxy on port ${port}`);
  const cut = (): number => {
    const count = open.size;
    for (const socket of [...open]) socket.destroy();
    open.clear();
    return count;
  };
  return {
    port,
    cut,
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
      disown();
    },
  };
}
