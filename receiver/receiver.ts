import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa, { type Context } from 'koa';
import { EventStore, parseEvent, type StoredEvent, type StoreOptions } from './store';
import { isGenuine, type FindKey } from './verify';

/** Longest accepted body in bytes. An event has about one kilobyte. */
const LONGEST_BODY = 1024 * 1024;
/** Time limit of a sender's request, and of open requests when the receiver closes. */
const REQUEST_TIMEOUT_MS = 30_000;
const CLOSE_TIMEOUT_MS = 5_000;

/** The parts of the answers. */
export interface AnswerOptions {
  findKey: FindKey;
  store: { add(event: StoredEvent): Promise<unknown> };
  /** Called for every delivery that is not answered with 200. */
  onProblem?: ((problem: { status: number; reason: string }) => void) | undefined;
  /** A status to answer instead of receiving: for tests of what the sender does then. */
  refusal?: (() => number | undefined) | undefined;
}

/** The receiver as a Koa application, answering on every path. Any answer but 2xx means "send it again". */
export function createReceiver({ findKey, store, onProblem, refusal }: AnswerOptions): Koa {
  const app = new Koa();
  const answer = (ctx: Context, status: number, text: string, cause?: unknown): void => {
    ctx.status = status;
    ctx.body = text;
    if (status === 200) return;
    onProblem?.({ status, reason: cause instanceof Error ? `${text}: ${cause.message}` : text });
  };
  app.use(async (ctx) => {
    if (ctx.method !== 'POST') {
      ctx.set('Allow', 'POST');
      return answer(ctx, 405, 'Method not allowed');
    }
    const status = refusal?.();
    if (status !== undefined) return answer(ctx, status, 'Refused on request');
    try {
      const body = await readBody(ctx.req);
      if (!body) return answer(ctx, 413, 'Body too large');
      // Nothing is parsed before this check: without a verified signature, anybody may have sent it.
      if (!(await isGenuine(ctx.req.headers, body, findKey))) return answer(ctx, 401, 'Invalid signature');
      const event = parseEvent(body);
      if (!event) return answer(ctx, 400, 'Not an event');
      // A duplicate is a success too: the sender did not get the first answer.
      await store.add(event);
      answer(ctx, 200, 'OK');
    } catch (cause) {
      answer(ctx, 500, 'Not stored, send again', cause);
    }
  });
  return app;
}

/** The bytes as they arrived, because the signature covers those. Undefined if there are too many. */
export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    // The rest is read and dropped, so that the sender can finish writing and see the answer.
    if (length <= LONGEST_BODY) chunks.push(chunk);
    else chunks.length = 0;
  }
  return length <= LONGEST_BODY ? Buffer.concat(chunks) : undefined;
}

/** A receiver that is listening. */
export interface RunningReceiver {
  url: string;
  /** Finishes open requests, then frees the port and the file. */
  close: () => Promise<void>;
}

/**
 * Listens (port 0 for any free port), opens the store, and returns the address. The port comes first: if
 * another receiver has it, the file is not touched. Requests wait until the store is open.
 */
export async function startReceiver(
  options: Omit<AnswerOptions, 'store'> & StoreOptions & { eventsFile: string; host: string; port: number },
): Promise<RunningReceiver> {
  const { eventsFile, host, port } = options;
  const server = createServer((request, response) => {
    handler.then(
      (handle) => handle(request, response),
      () => response.destroy(),
    );
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  const opening = listen(server, host, port).then(() => EventStore.open(eventsFile, options));
  const handler = opening.then((store) => createReceiver({ ...options, store }).callback());
  try {
    await handler;
  } catch (error) {
    if (server.listening) server.close().closeAllConnections();
    throw error;
  }
  const address = server.address() as AddressInfo;
  const printedHost = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    url: `http://${printedHost}:${address.port}`,
    close: async () => {
      await closeServer(server);
      await (await opening).close();
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    const patience = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS);
    server.close((error) => {
      clearTimeout(patience);
      if (error) reject(error);
      else resolve();
    });
  });
}
