import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { codeOf } from '../errors';
import { CORS_HEADERS } from './middleware/cors';

/**
 * Answers what Node.js could not parse as a request, in the same form as every other error: no application has seen it, so there is
 * nothing to route and nothing to log but this.
 */
export function answerMalformedRequest(newId: () => string): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || codeOf(error) === 'ECONNRESET') return void socket.destroy();
    const status = codeOf(error) === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    const message = status === 431 ? 'The headers are too large.' : 'The request is not valid HTTP.';
    const body = JSON.stringify({ error: { message } });
    const headers = {
      ...CORS_HEADERS,
      'X-Request-Id': newId(),
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...head, '', body].join('\r\n'));
  };
}
