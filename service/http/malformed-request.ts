import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { codeOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { CORS_HEADERS } from './middleware/cors';
import { ERROR_CODE_HEADER, HttpError } from './middleware/errors';

/** The answer to each kind of error. Every other error is 400. */
const ANSWERS: Readonly<Record<string, HttpError>> = {
  HPE_HEADER_OVERFLOW: new HttpError(431, 'HEADERS_TOO_LARGE', 'The headers are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new HttpError(408, 'REQUEST_TIMEOUT', 'The request did not arrive in time.'),
};
const NOT_HTTP = new HttpError(400, 'REQUEST_MALFORMED', 'The request is not valid HTTP.');

/**
 * Answers what Node.js could not parse as a request, or did not get in time, in the same form as every other
 * error: no application has seen it as a whole, so there is nothing to route. Then the connection ends in
 * both directions: what goes on to arrive must not become a request after all, whose caller was told that it
 * failed. While another answer is under way the connection ends without one, which would be taken for part
 * of it.
 */
export function answerMalformedRequests(server: Server, newId: () => string, logger?: Logger): void {
  const underWay = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const responses = underWay.get(socket) ?? new Set();
    underWay.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  });
  server.on('clientError', (error: Error, socket: Socket) => {
    if (!socket.writable || codeOf(error) === 'ECONNRESET') return void socket.destroy();
    const { status, code, message } = ANSWERS[codeOf(error) ?? ''] ?? NOT_HTTP;
    const requestId = newId();
    logger?.warn({ requestId, code, status }, message);
    if (!isAnswerable([...(underWay.get(socket) ?? [])])) return void socket.destroy();
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
    socket.destroySoon();
  });
}

/** Whether the next answer on a connection is that to the request which did not arrive as a whole. */
function isAnswerable([first, ...others]: readonly ServerResponse[]): boolean {
  if (first === undefined) return true;
  return others.length === 0 && !first.headersSent && !first.req.complete;
}
