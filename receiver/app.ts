import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa, { type Context } from 'koa';
import type { ChainEvent, Retraction, ServiceEvent, TestEvent } from './event-schemas';
import { EventStore, type StoreOptions } from './event-store';
import type { PublicKeys } from './public-keys';
import { readRawBody } from './raw-body';
import { isUnknown, parseDelivery, type UnknownDelivery } from './received-event';
import { isGenuine } from './verify-delivery';

/** Time limit of a sender's request, and of open requests when the receiver closes. */
const REQUEST_TIMEOUT_MS = 30_000;
const CLOSE_TIMEOUT_MS = 5_000;

/** Options of the receiver. */
export interface ReceiverOptions {
  /** The sender's Ed25519 keys. */
  publicKeys: PublicKeys;
  store: Pick<EventStore, 'add'>;
  /**
   * Called once for each chain event, after it is stored and before the sender gets its answer. Must be
   * quick.
   */
  onEvent: (event: ChainEvent) => void;
  /** The same for each retraction. */
  onRetraction?: (retraction: Retraction) => void;
  /** The same for each test event: the subscription works, and nothing has happened on the chain. */
  onTest?: (event: TestEvent) => void;
  /** Called once for each stored delivery that is not a known event. */
  onUnknown?: (delivery: UnknownDelivery) => void;
  /** Called for every delivery that is not answered with 200. */
  onProblem?: (problem: { status: number; reason: string }) => void;
  /** A status to answer instead of receiving: for tests of what the sender does then. */
  refusal?: () => number | undefined;
}

/** A receiver that is listening. */
export interface RunningReceiver {
  url: string;
  /** Finishes open requests, then frees the port and the file. */
  close: () => Promise<void>;
}

/** The receiver as a Koa application, answering on every path. */
export function createReceiver(options: ReceiverOptions): Koa {
  const app = new Koa();
  const answer = (ctx: Context, status: number, text: string, cause?: unknown): void => {
    ctx.status = status;
    ctx.body = text;
    if (status === 200) return;
    const reason = cause instanceof Error ? `${text}: ${cause.message}` : text;
    options.onProblem?.({ status, reason });
  };

  app.use(async (ctx) => {
    if (ctx.method !== 'POST') {
      ctx.set('Allow', 'POST');
      return answer(ctx, 405, 'Method not allowed');
    }
    const refusal = options.refusal?.();
    if (refusal !== undefined) return answer(ctx, refusal, 'Refused on request');
    try {
      const body = await readRawBody(ctx.req);
      if (!body) return answer(ctx, 413, 'Body too large');
      // The body is not parsed before this check: without a verified signature, anybody may have sent it.
      if (!(await isGenuine(ctx.req.headers, body, options.publicKeys)))
        return answer(ctx, 401, 'Invalid signature');
      const received = parseDelivery(body);
      if (!received) return answer(ctx, 400, 'Not JSON');
      // A duplicate is answered as a success: the sender did not get the first answer.
      if ((await options.store.add(received)) === 'stored') notify(received, options);
      answer(ctx, 200, 'OK');
    } catch (cause) {
      answer(ctx, 500, 'Not stored, send again', cause);
    }
  });
  return app;
}

function notify(received: ServiceEvent | UnknownDelivery, options: ReceiverOptions): void {
  if (isUnknown(received)) options.onUnknown?.(received);
  else if (received.type === 'com.service.etr.retracted') options.onRetraction?.(received);
  else if (received.type === 'com.service.etr.test') options.onTest?.(received);
  else options.onEvent(received);
}

/**
 * Listens (port 0 for any free port), opens the store, and returns the address. The port comes first: if
 * another receiver has it, the file is not touched. Requests wait until the store is open.
 */
export async function startReceiver(
  options: Omit<ReceiverOptions, 'store'> & StoreOptions & { eventsFile: string; host: string; port: number },
): Promise<RunningReceiver> {
  const { eventsFile, host, port, ...rest } = options;
  const server = createServer((request, response) => {
    handler.then(
      (handle) => handle(request, response),
      () => response.destroy(),
    );
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  const store = listen(server, host, port).then(() => EventStore.open(eventsFile, rest));
  const handler = store.then((opened) => createReceiver({ ...rest, store: opened }).callback());
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
      await (await store).close();
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
