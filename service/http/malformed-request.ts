import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { codeOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { CORS_HEADERS } from './middleware/cors';
import { ERROR_CODE_HEADER, HttpError } from './middleware/errors';

/** The answer to each kind of error; all others are answered 400. */
const ANSWERS: Readonly<Record<string, HttpError>> = {
  HPE_HEADER_OVERFLOW: new HttpError(431, 'HEADERS_TOO_LARGE', 'The headers are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new HttpError(408, 'REQUEST_TIMEOUT', 'The request did not arrive in time.'),
};
const NOT_HTTP = new HttpError(400, 'REQUEST_MALFORMED', 'The request is not valid HTTP.');

/**
 * Answers requests that Node.js could not parse, or did not receive in time, in the form of every other
 * error. The application never sees these requests. The connection then ends in both directions: if the rest
 * of the request arrived, it would be processed although its caller was told that it failed. If another
 * response is being sent, the connection ends without an answer, because the client would take it for part of
 * that response.
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

/** Whether the next answer on the connection is the answer to the malformed request. */
function isAnswerable([first, ...others]: readonly ServerResponse[]): boolean {
  if (first === undefined) return true;
  return others.length === 0 && !first.headersSent && !first.req.complete;
}
