import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { REQUEST } from './http-app';

/** A request whose bytes a test sends itself. */
export interface RawRequest {
  socket: Socket;
  /** The answer so far. */
  answer(): string;
  /** Waits until the other side ends the connection, or the connection breaks. */
  ended(): Promise<void>;
}

type Headers = Record<string, string | number>;

/** Connects and sends the head of a POST /create. */
export async function rawCreate(url: string, headers: Headers): Promise<RawRequest> {
  return rawRequest(url, textOf('POST /create/BILL_OF_LADING', headers));
}

/** The text of a POST /create with its body. */
export function createRequest(headers: Headers = {}): string {
  return textOf('POST /create/BILL_OF_LADING', { 'Content-Length': REQUEST.length, ...headers }, REQUEST);
}

/** A request as text. */
export function textOf(line: string, headers: Headers, body = ''): string {
  const lines = Object.entries({ Host: 'x', 'Content-Type': 'application/json', ...headers });
  return `${line} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}

/**
 * Connects and sends the text.
 *
 * @param allowHalfOpen whether it may go on sending when the other side has ended, as in most languages.
 */
export async function rawRequest(url: string, text: string, allowHalfOpen = false): Promise<RawRequest> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  await once(socket, 'connect');
  socket.write(text);
  return {
    socket,
    answer: () => Buffer.concat(chunks).toString(),
    async ended() {
      await closed;
    },
  };
}
