import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { owned } from '../resources';

/** A TCP proxy that can cut its connections. */
export interface TcpProxy extends AsyncDisposable {
  port: number;
  /** Breaks every connection, and returns their number. */
  cut(this: void): number;
  /** Breaks every connection, and each new one at once, until `accept` is called. */
  refuse(): void;
  accept(): void;
  /** The number of times that the target has sent `watchFor`. */
  sightings(): number;
  close(): Promise<void>;
}

/**
 * Starts a proxy in front of a port of 127.0.0.1.
 *
 * @param watchFor text to count in the data of the target.
 */
export async function startTcpProxy(target: number, watchFor?: string): Promise<TcpProxy> {
  const open = new Set<Socket>();
  let isRefusing = false;
  let sightings = 0;
  const server = createServer((client) => {
    if (isRefusing) {
      client.destroy();
      return;
    }
    const upstream = connect(target, '127.0.0.1');
    open.add(client);
    client.pipe(upstream).pipe(client);
    if (watchFor !== undefined) upstream.on('data', (chunk) => void (sightings += countIn(chunk, watchFor)));
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
  const cut = (): number => {
    const count = open.size;
    for (const socket of [...open]) socket.destroy();
    open.clear();
    return count;
  };
  const proxy = {
    port,
    cut,
    refuse() {
      isRefusing = true;
      cut();
    },
    accept: () => void (isRefusing = false),
    sightings: () => sightings,
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return owned(`proxy on port ${port}`, proxy, 'close');
}

function countIn(chunk: Buffer, text: string): number {
  return chunk.toString('latin1').split(text).length - 1;
}
