import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { codeOf } from '../errors';
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
 * error: no application has seen it as a whole, so there is nothing to route and nothing to log but this.
 * Then the connection ends in both directions: what goes on to arrive must not become a request after all,
 * whose caller was told that it failed.
 */
export function answerMalformedRequest(newId: () => string): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || codeOf(error) === 'ECONNRESET') return void socket.destroy();
    const { status, code, message } = ANSWERS[codeOf(error) ?? ''] ?? NOT_HTTP;
    const body = JSON.stringify({ error: { message } });
    const headers = {
      ...CORS_HEADERS,
      'X-Request-Id': newId(),
      [ERROR_CODE_HEADER]: code,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.write([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, '', body].join('\r\n'));
    socket.destroySoon();
  };
}
