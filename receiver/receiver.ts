import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Koa, { type Context } from 'koa';
import { EventStore, parseEvent, type StoredEvent, type StoreOptions } from './store';
import { isGenuine, type FindKey } from './verify';

/** Longest accepted body in bytes. An event has about one kilobyte. */
const LONGEST_BODY = 1024 * 1024;
/** Memory of a body that is always read. Only so many larger ones are held at once, in LONGEST_BODY each. */
const SMALL_BODY = 32 * 1024;
export const MOST_LARGE = 32;
/** The service has at most 1,000 deliveries of a registry to a subscription under way. */
export const MOST_CONNECTIONS = 2_000;
/** Time limits of a sender's request, and how often it is looked for late ones. */
export const PATIENCE = {
  requestTimeout: 30_000,
  headersTimeout: 10_000,
  connectionsCheckingInterval: 5_000,
};
/** Time limit of open requests when the receiver closes. */
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
  // Koa would print a stack for each sender that leaves.
  app.silent = true;
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
      if (Array.isArray(body)) return answer(ctx, ...body);
      // Nothing is parsed before this check: without a verified signature, anybody may have sent it.
      if (!(await isGenuine(ctx.req.headers, body, findKey))) return answer(ctx, 401, 'Invalid signature');
      const event = parseEvent(body);
      if (!event) return answer(ctx, 400, 'Not an event');
      // A duplicate is a success too: the sender did not get the first answer.
      await store.add(event);
      answer(ctx, 200, 'OK');
    } catch (cause) {
      if (!ctx.req.complete) return answer(ctx, 400, 'Body not complete');
      answer(ctx, 500, 'Not stored, send again', cause);
    } finally {
      large.delete(ctx.req);
    }
  });
  return app;
}

/** The requests whose large bodies this process holds. */
const large = new Set<IncomingMessage>();

/**
 * Reads the bytes as they arrived, because the signature covers those; or the status and the text of a
 * refusal. Chunks are copied: a sender may send single bytes, and each chunk takes memory besides its bytes.
 */
async function readBody(request: IncomingMessage): Promise<Buffer | [413 | 503, string]> {
  let [bytes, length] = [Buffer.allocUnsafe(SMALL_BODY), 0];
  let refusal: [413 | 503, string] | undefined;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    // The rest is read and dropped, so that the sender can finish writing and see the answer.
    if (refusal) continue;
    if (length + chunk.length > LONGEST_BODY) refusal = [413, 'Body too large'];
    else if (length + chunk.length <= bytes.length) length += chunk.copy(bytes, length);
    else if (!large.has(request) && large.size === MOST_LARGE)
      refusal = [503, 'Too many large bodies, send again'];
    else {
      large.add(request);
      bytes = Buffer.concat([bytes.subarray(0, length), chunk], LONGEST_BODY);
      length += chunk.length;
    }
  }
  return refusal ?? bytes.subarray(0, length);
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
  options: Omit<AnswerOptions, 'store'> &
    StoreOptions & {
      eventsFile: string;
      host: string;
      port: number;
      /** Other time limits of a request, for tests. */
      patience?: Partial<typeof PATIENCE>;
    },
): Promise<RunningReceiver> {
  const { eventsFile, host, port } = options;
  const server = createServer({ ...PATIENCE, ...options.patience }, (request, response) => {
    handler.then(
      (handle) => (request.socket.destroyed ? undefined : handle(request, response)),
      () => response.destroy(),
    );
  });
  boundConnections(server);
  const listening = once(server.listen(port, host), 'listening');
  const opening = listening.then(() => EventStore.open(eventsFile, options));
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

/**
 * A new connection takes the place of the one whose last answer, or beginning, is the longest ago. A sender
 * that does not wait for an answer is cut off: its requests could take memory without end.
 */
function boundConnections(server: Server): void {
  const connections = new Set<Socket>();
  const answering = new Set<Socket>();
  server.on('request', ({ socket }, response) => {
    if (answering.has(socket)) return void socket.destroy();
    answering.add(socket);
    response.once('close', () => {
      answering.delete(socket);
      if (connections.delete(socket)) connections.add(socket);
    });
  });
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => connections.delete(socket));
    const [oldest] = connections.add(socket);
    if (connections.size > MOST_CONNECTIONS && oldest && connections.delete(oldest))
      oldest.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n').destroySoon();
  });
}

async function closeServer(server: Server): Promise<void> {
  const patience = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS);
  await once(server.close(), 'close').finally(() => clearTimeout(patience));
}
