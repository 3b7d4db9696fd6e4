import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ConfigurationError, codeOf, messageOf } from '../base/errors';
import { boundConnections, type ConnectionBound } from './bounded-connections';
import { answerMalformedRequests } from './malformed-request';

/** A listening HTTP server. */
export interface HttpServer {
  /** Base address with the actual port. */
  url: string;
  /** Stops accepting, lets requests under way finish, and resolves when the last is answered. */
  close(): Promise<void>;
}

const CLOSE_IDLE_EVERY_MS = 50;
/** How long a connection may take to send its first request after the server was closed. */
const CLOSE_UNUSED_AFTER_MS = 1_000;

/** Time limits for a request to arrive; the default is Node.js's five minutes. Tests use shorter ones. */
type Patience = Pick<ServerOptions, 'requestTimeout' | 'connectionsCheckingInterval'>;

/** Without a bound, as many may be connected as the process may have descriptors. */
export interface ListenOptions extends Patience {
  connections?: ConnectionBound;
}

/** Starts a server on `host`; port 0 takes a free one. */
export async function listen(
  handler: RequestListener,
  host: string,
  port: number,
  { connections, ...patience }: ListenOptions = {},
): Promise<HttpServer> {
  // Node.js would answer a missing Host in its own format; the application checks it instead.
  const server = createServer({ ...patience, requireHostHeader: false }, handler);
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  const unused = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  if (connections) boundConnections(server, connections);
  answerMalformedRequests(server, randomUUID, connections?.logger);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(cannotListen(cause, host, port)));
    server.listen(port, host, resolve);
  });
  const { port: actualPort } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actualPort}`,
    close: () =>
      new Promise((resolve, reject) => {
        // A connection becomes idle when its last request is answered, and clients keep it open. Closing must
        // not wait for it.
        const closeIdle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
        // Node.js does not count a connection as idle that browsers and proxies open for later.
        const closeUnused = setTimeout(
          () => unused.forEach((socket) => socket.destroy()),
          CLOSE_UNUSED_AFTER_MS,
        );
        server.close((error) => {
          clearInterval(closeIdle);
          clearTimeout(closeUnused);
          if (error) reject(error);
          else resolve();
        });
      }),
  };
}

function cannotListen(cause: Error, host: string, port: number): Error {
  if (codeOf(cause) === 'EADDRINUSE') {
    const remedy = 'Stop what listens there, or set PORT to another.';
    return new ConfigurationError('PORT_TAKEN', `Port ${port} of ${host} is taken. ${remedy}`, {
      cause,
      remedy,
    });
  }
  const message = `Cannot listen on ${host}:${port}: ${messageOf(cause)}`;
  return new ConfigurationError('CANNOT_LISTEN', message, { cause, remedy: 'Check HOST and PORT.' });
}
