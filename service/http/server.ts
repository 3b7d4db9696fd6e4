import { randomUUID } from 'node:crypto';
import {
  createServer,
  STATUS_CODES,
  type RequestListener,
  type ServerOptions,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { ConfigurationError, codeOf, messageOf, RequestError } from '../base/errors';
import type { Logger } from '../base/logger';
import { type Time, repeat } from '../base/time';
import { CORS_HEADERS } from './gate';
import { ERROR_CODE_HEADER } from './request-log';

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

/** Node.js would look for late requests every 30 s. */
const CHECK_EVERY_MS = 5_000;

/** Without a bound, as many may be connected as the process may have descriptors. */
export interface ListenOptions extends Patience {
  time: Time;
  connections?: ConnectionBound;
}

/** Open connections with their answers under way. Those without any stand in the order of becoming idle. */
type Connections = Map<Socket, Set<ServerResponse>>;

/** Starts a server on `host`; port 0 takes a free one. */
export async function listen(
  handler: RequestListener,
  host: string,
  port: number,
  { time, connections: bound, ...patience }: ListenOptions,
): Promise<HttpServer> {
  // Node.js would answer a missing Host in its own format; the application checks it instead.
  const options = { connectionsCheckingInterval: CHECK_EVERY_MS, ...patience, requireHostHeader: false };
  const server = createServer(options, handler);
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  const connections = connectionsOf(time, server);
  if (bound) boundConnections(time, server, connections, bound);
  answerMalformedRequests(server, connections, time, bound?.logger);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(cannotListen(cause, host, port)));
    server.listen(port, host, resolve);
  });
  const { port: actualPort } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actualPort}`,
    async close() {
      // A connection becomes idle when its last request is answered, and clients keep it open. Closing must
      // not wait for it.
      const closing = repeat(time, async () => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
      // Node.js does not count a connection as idle that browsers and proxies open for later.
      const cancel = time.later(CLOSE_UNUSED_AFTER_MS, () => {
        for (const [socket, { size }] of connections)
          if (size === 0 && socket.bytesWritten === 0) socket.destroy();
      });
      await new Promise((resolve) => server.close(resolve));
      void closing.stop();
      cancel();
    },
  };
}

function connectionsOf(time: Time, server: Server): Connections {
  const connections: Connections = new Map();
  server.on('connection', (socket: Socket) => {
    connections.set(socket, new Set());
    socket.once('close', () => connections.delete(socket));
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const responses = connections.get(socket);
    responses?.add(response);
    // Node.js ends the connection when an answer that has to be the last is finished.
    response.prependOnceListener('finish', () => {
      if (!request.complete) socket.destroySoon = () => readRest(time, socket, request);
    });
    response.once('close', () => {
      responses?.delete(response);
      if (responses?.size !== 0 || !connections.delete(socket)) return;
      connections.set(socket, responses);
    });
  });
  return connections;
}

/** How long the rest of a request is read and dropped after its answer. */
const READ_REST_WITHIN_MS = 10_000;

/**
 * Ends a connection after an answer that did not wait for the whole request. Many callers send all of it
 * before they read. If the connection closed before, they would get an error instead of the answer (RFC 9112,
 * section 9.6).
 */
function readRest(time: Time, socket: Socket, rest: Readable): void {
  socket.end();
  const cancel = time.later(READ_REST_WITHIN_MS, () => socket.destroy());
  socket.once('close', cancel);
  rest.once('end', () => socket.destroy()).resume();
}

function cannotListen(cause: Error, host: string, port: number): Error {
  if (codeOf(cause) === 'EADDRINUSE') {
    const remedy = 'Stop what listens there, or set PORT to another.';
    const message = `Port ${port} of ${host} is taken. ${remedy}`;
    return new ConfigurationError('PORT_TAKEN', message, { cause, remedy });
  }
  const message = `Cannot listen on ${host}:${port}: ${messageOf(cause)}`;
  return new ConfigurationError('CANNOT_LISTEN', message, { cause, remedy: 'Check HOST and PORT.' });
}

/** The highest number of connections, and the log that reports when it is reached. */
export interface ConnectionBound {
  most: number;
  logger: Logger;
}

const WARN_EVERY_MS = 60_000;

/**
 * Keeps the server from using all file descriptors of the process, because event delivery needs some too.
 * When the limit is reached, a new connection replaces the one that has been idle the longest. If none is
 * idle, the new connection is closed.
 */
function boundConnections(
  time: Time,
  server: Server,
  connections: Connections,
  { most, logger }: ConnectionBound,
): void {
  let warnedAt = -Infinity;
  server.on('connection', (socket: Socket) => {
    if (connections.size <= most) return;
    const longest = longestIdle(connections) ?? socket;
    connections.delete(longest);
    longest.destroy();
    if (longest !== socket || time.elapsed() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = time.elapsed();
    const remedy = 'Let the process open more files (`ulimit -n`).';
    const text = 'connections are refused: all allowed connections wait for answers';
    logger.warn({ connections: most, remedy }, text);
  });
}

function longestIdle(connections: Connections): Socket | undefined {
  for (const [socket, { size }] of connections) if (size === 0) return socket;
  return undefined;
}

/** The answer to each kind of error; all others are answered 400. */
const ANSWERS: Readonly<Record<string, RequestError>> = {
  HPE_HEADER_OVERFLOW: new RequestError('HEADERS_TOO_LARGE', 'The headers are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new RequestError('REQUEST_TIMEOUT', 'The request did not arrive in time.'),
};
const NOT_HTTP = new RequestError('REQUEST_MALFORMED', 'The request is not valid HTTP.');

/**
 * Answers requests that Node.js could not parse, or did not receive in time, in the form of every other
 * error. The application sees at most the head of such a request. The rest of a late one is not read: it
 * would be processed although its caller was told that it failed. After a head that is wrong, Node.js drops
 * the rest. If another response is being sent, the connection ends without an answer, because the client
 * would take it for part of that response.
 */
function answerMalformedRequests(
  server: Server,
  connections: Connections,
  time: Time,
  logger?: Logger,
): void {
  const answered = new WeakSet<Socket>();
  server.on('clientError', (error: Error, socket: Socket) => {
    if (answered.has(socket)) return;
    if (!socket.writable || codeOf(error) === 'ECONNRESET') return void socket.destroy();
    const { status, code, message } = ANSWERS[codeOf(error) ?? ''] ?? NOT_HTTP;
    const requestId = randomUUID();
    logger?.warn({ requestId, code, status }, message);
    const underWay = [...(connections.get(socket) ?? [])];
    if (!isAnswerable(underWay)) return void socket.destroy();
    const body = JSON.stringify({ error: { message } });
    const headers = {
      ...CORS_HEADERS,
      'X-Request-Id': requestId,
      [ERROR_CODE_HEADER]: code,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.write([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, '', body].join('\r\n'));
    answered.add(socket);
    if (status === 408 || underWay.length > 0) socket.destroySoon();
    else readRest(time, socket, socket);
  });
}

/** Whether the next answer on the connection is the answer to the malformed request. */
function isAnswerable([first, ...others]: readonly ServerResponse[]): boolean {
  if (first === undefined) return true;
  return others.length === 0 && !first.headersSent && !first.req.complete;
}
