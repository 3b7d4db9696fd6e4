import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { percentDecoded } from '../../../service/base/mask-secrets';
import { owned } from '../resources';

/**
 * A server that fails in a chosen way, and echoes the whole request: URL, headers, credentials and body.
 */
export interface EchoingServer extends AsyncDisposable {
  port: number;
  /** The number of requests, by the mode of their answers. */
  asked: Record<string, number>;
  /** Fails in this way from now on. `GET /mode/NAME` does the same from another process. */
  fail(mode: string): void;
  close(): Promise<void>;
}

type Answer = (told: string, body: { id?: number }, response: ServerResponse) => void;

/** Every way of failing, by its name. */
const MODES: Record<string, Answer> = {
  ...Object.fromEntries(
    [401, 402, 403, 404, 429, 500, 503].map((status): [string, Answer] => [
      `status-${status}`,
      (told, _body, response) =>
        // Longer than any caller waits before a retry.
        void response.writeHead(status, { 'Retry-After': '9' }).end(`<html>${status}: ${told}</html>`),
    ]),
  ),
  // Some callers cut the body after 1,000 characters, in the middle of the key.
  'long-refusal': (told, _body, response) => void response.writeHead(500).end(`${'x'.repeat(970)}${told}`),
  'rpc-error': (message, { id }, response) =>
    void response.end(
      JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message, data: message } }),
    ),
  'told-as-result': (result, { id }, response) =>
    void response.end(JSON.stringify({ jsonrpc: '2.0', id, result })),
  'wrong-chain': (_told, { id }, response) =>
    void response.end(JSON.stringify({ jsonrpc: '2.0', id, result: '0x539' })),
  'half-json': (told, { id }, response) => void response.end(`{"jsonrpc":"2.0","id":${id},"result":"${told}`),
  html: (told, _body, response) => void response.end(`<html>${told}</html>`),
  redirect: (told, _body, response) =>
    void response.writeHead(302, { Location: `/elsewhere?${encodeURIComponent(told)}` }).end(),
  cut: (_told, _body, response) => void response.socket?.destroy(),
  'cut-answer': (told, _body, response) => {
    response.writeHead(200, { 'Content-Length': '100000' });
    response.write(told, () => setImmediate(() => response.socket?.destroy()));
  },
};

/** The names of all ways of failing. */
export const MODE_NAMES = Object.keys(MODES);

/** Starts it, on a free port. */
export async function startEchoingServer(): Promise<EchoingServer> {
  let mode = MODE_NAMES[0] ?? '';
  const asked: Record<string, number> = {};
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const wanted = /^\/mode\/([\w-]+)$/.exec(request.url ?? '')?.[1];
    if (wanted !== undefined) {
      mode = wanted;
      response.end();
      return;
    }
    asked[mode] = (asked[mode] ?? 0) + 1;
    const body = await text(request);
    MODES[mode]?.(toldBy(request, body), bodyOf(body), response);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => request.socket.destroy());
  });
  server.on('upgrade', (request, socket) => {
    const told = toldBy(request, '');
    asked['web-socket'] = (asked['web-socket'] ?? 0) + 1;
    const reason = told.replace(/[^\x20-\x7e]/g, '?').slice(0, 2_000);
    socket.end(`HTTP/1.1 401 ${reason}\r\nConnection: close\r\n\r\n${told}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const echo = {
    port,
    asked,
    fail: (next: string) => void (mode = next),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return owned(`echoing server on port ${port}`, echo, 'close');
}

function toldBy({ method, url = '', headers }: IncomingMessage, body: string): string {
  const credentials = Buffer.from(headers.authorization?.split(' ')[1] ?? '', 'base64').toString();
  return [method, url, percentDecoded(url), JSON.stringify(headers), credentials, body].join(' | ');
}

function bodyOf(body: string): { id?: number } {
  try {
    return JSON.parse(body) as { id?: number };
  } catch {
    return {};
  }
}
