import { createServer, type AddressInfo } from 'node:net';
import { connect } from 'node:net';
import type { TunnelLibrary } from '../../../service/http/tunnel';
import { track } from '../resources';

/** A stand-in for ngrok that forwards from a port of this machine as its public end. */
export interface TunnelStandIn {
  load: () => Promise<TunnelLibrary>;
  /** The options of the service. */
  asked(): Parameters<TunnelLibrary['forward']>[0];
  /** The number of open public ends. */
  openEnds(): number;
  /** Reports a change of the connection to the service, as the library does. */
  tell(status: string): void;
}

/**
 * Makes the stand-in.
 *
 * @param until opening waits for this.
 */
export function tunnelStandIn(until: Promise<unknown> = Promise.resolve()): TunnelStandIn {
  let options: Parameters<TunnelLibrary['forward']>[0] | undefined;
  let openEnds = 0;
  const asked = (): Parameters<TunnelLibrary['forward']>[0] => {
    if (options === undefined) throw new Error('no tunnel was asked for');
    return options;
  };
  const forward: TunnelLibrary['forward'] = async (given) => {
    options = given;
    await until;
    const { hostname, port: target } = new URL(given.addr);
    const server = createServer((client) => {
      const upstream = connect(Number(target), hostname.replace(/^\[|\]$/g, ''));
      client.pipe(upstream).pipe(client);
      for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const untrack = track(`public end of a tunnel on port ${port}`);
    openEnds += 1;
    return {
      url: () => `http://127.0.0.1:${port}`,
      close: () =>
        new Promise((resolve) =>
          server.close(() => {
            openEnds -= 1;
            untrack();
            resolve();
          }),
        ),
    };
  };
  return {
    load: async () => ({ forward }),
    asked,
    openEnds: () => openEnds,
    tell: (status) => asked().onStatusChange(status),
  };
}
