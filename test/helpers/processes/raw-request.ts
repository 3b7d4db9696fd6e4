import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A request whose bytes a test sends itself. */
export interface RawRequest {
  socket: Socket;
  /** The answer so far. */
  answer(): string;
  /** Waits until the other side ends the connection, or the connection breaks. */
  ended(): Promise<void>;
}

/** Connects and sends the head of a POST /create. */
export async function rawCreate(url: string, headers: Record<string, string | number>): Promise<RawRequest> {
  const lines = Object.entries({ Host: 'x', 'Content-Type': 'application/json', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return rawRequest(url, `POST /create/BILL_OF_LADING HTTP/1.1\r\n${head}\r\n`);
}

/** Connects and sends the text. */
export async function rawRequest(url: string, text: string): Promise<RawRequest> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
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
