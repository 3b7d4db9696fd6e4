import { createHmac, randomBytes, sign } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { SpanKind } from '@opentelemetry/api';
import { buildConnector, Client } from 'undici';
import type { Happenings, Lifecycle } from '../base/lifecycle';
import { type Time, retryAfterMsOf } from '../base/time';
import type { DeliveryOptions, RetrySchedule } from '../base/delivery-options';
import { connectionProblem } from '../base/errors';
import { type Answered, type Exchange, exchange } from '../base/exchange';
import type { Logger } from '../base/logger';
import { type SigningKey, signingKeyAt, type SigningKeys } from '../base/signing-keys';
import { addSpan, beginSpan, endSpan, hasSdk, traceIdOf, traceOfEvent, type BegunSpan } from '../base/trace';
import { aboutOf, eventTimeOf } from '../events/cloud-event';
import type { Attempted, ClaimedDelivery, ClaimedQueue } from '../outbox/claim-queues';
import type { Settlement } from '../outbox/settle-queues';
import type { IdleConnections } from './delivery-slots';
import { connectingWithin, guardedConnector, type SinkGuard } from './guarded-connector';
import { nextAttemptAt } from './retry-schedule';

/** Dependencies of an attempt. `random` returns a number from 0 to below 1. */
export interface AttemptOptions {
  client: WebhookClient;
  retry: RetrySchedule;
  time: Time;
  random: () => number;
  logger: Logger;
  lifecycle: Lifecycle;
  /** The registry whose events are delivered. */
  registry: Happenings['attempted'][0];
}

/**
 * Sends the events of a claimed queue one after the other, up to the first that fails, or until `mayGoOn`
 * returns false. It never rejects.
 */
export async function attemptQueue(
  options: AttemptOptions,
  queue: ClaimedQueue,
  mayGoOn: () => boolean,
): Promise<Settlement> {
  const delivered: Attempted[] = [];
  let failed: Settlement['failed'];
  for (const delivery of queue.deliveries) {
    if (!mayGoOn()) break;
    const first = delivered.length === 0 ? queue.firstAttemptedAt : options.time.now();
    const attempted = await attemptDelivery(options, delivery, first);
    if ('nextAttemptAt' in attempted) {
      failed = attempted;
      break;
    }
    delivered.push(attempted);
  }
  tellDelivered(options.logger, delivered);
  return failed ? { queue, delivered, failed } : { queue, delivered };
}

/** One line for all of them: writing a line blocks the thread. */
function tellDelivered(logger: Logger, delivered: readonly Attempted[]): void {
  const [first] = delivered;
  if (first === undefined) return;
  const eventIds = delivered.map(({ delivery }) => delivery.eventId);
  const ms = delivered.reduce((sum, { attempt }) => sum + attempt.milliseconds, 0);
  const { body, attempt, trace } = first.delivery;
  const line = { ...aboutOf(body), traceId: traceIdOf(trace), eventIds, attempt };
  logger.info({ ...line, status: first.attempt.status, ms }, 'delivered');
}

/** Makes one attempt: post, classify, decide. A failure has a log line of its own. It never rejects. */
async function attemptDelivery(
  options: AttemptOptions,
  delivery: ClaimedDelivery,
  firstAttemptedAt: number,
): Promise<Attempted | NonNullable<Settlement['failed']>> {
  const { time, client, logger, lifecycle, registry } = options;
  const { eventId, type, attempt } = delivery;
  const attemptedAt = time.now();
  const [span, trace] = beginAttempt(delivery, client, attemptedAt);
  const start = time.elapsed();
  const result = await client.post(delivery.body, eventId, trace);
  const now = time.now();
  const { status } = result;
  const error = failureOf(result);
  const ms = Math.round(time.elapsed() - start);
  const record = { attemptedAt, milliseconds: ms, status, error };
  const failure = error === undefined ? undefined : String(status ?? 'no answer');
  const outcome = { 'http.response.status_code': status, 'error.type': failure };
  endSpan(span, error !== undefined, attemptedAt + ms, outcome);
  if (error === undefined) {
    lifecycle.emit('attempted', registry, 'delivered', ms, now - eventTimeOf(delivery.body));
    return { delivery, attempt: record };
  }
  const { tokenId, transactionHash } = aboutOf(delivery.body);
  const traceId = traceIdOf(trace);
  const line = { eventId, type, tokenId, transactionHash, traceId, attempt, status, ms, reason: error };
  if (status === GONE) {
    lifecycle.emit('attempted', registry, 'failed', ms);
    logger.error(line, 'the receiver is gone: nothing more is sent until it is resumed');
    // The event is due as soon as the channel is resumed.
    return { delivery, attempt: record, nextAttemptAt: now, isGone: true };
  }
  const retryAfterMs = retryAfterMsOf(result.retryAfter, now);
  const dueAt = nextAttemptAt(
    { attempt, firstAttemptedAt, now, retryAfterMs },
    options.retry,
    options.random(),
  );
  lifecycle.emit('attempted', registry, dueAt === undefined ? 'dead' : 'failed', ms);
  if (dueAt === undefined) logger.error(line, 'dead letter');
  else logger.warn({ ...line, retryInMs: dueAt - now }, 'delivery failed');
  return { delivery, attempt: record, nextAttemptAt: dueAt };
}

/** Begins the span of an attempt. The first one ends the event's time in the queue. */
function beginAttempt(
  { eventId, type, attempt, recordedAt, trace }: ClaimedDelivery,
  { server }: WebhookClient,
  startTime: number,
): BegunSpan {
  if (!hasSdk()) return [undefined, trace];
  const place = { ...server, 'cloudevents.event_id': eventId, 'cloudevents.event_type': type };
  if (attempt === 1) addSpan('queue', trace, recordedAt, startTime, place);
  const attributes = { ...place, 'http.request.method': 'POST', 'http.request.resend_count': attempt - 1 };
  return beginSpan('POST', trace, { kind: SpanKind.CLIENT, startTime, attributes });
}

/** The receiver wants no further deliveries. */
const GONE = 410;

/**
 * Why a delivery is no success. A 2xx status is one; everything else is not, including redirects
 * (docs/specification.md 8.3).
 */
export function failureOf({ status, failure }: PostResult): string | undefined {
  const hundreds = Math.floor((status ?? 0) / 100);
  if (hundreds === 2) return undefined;
  return failure ?? (hundreds === 3 ? `redirected (${status})` : `answered ${status}`);
}

/** The receiver's answer, or the reason why there was none. */
export interface PostResult {
  status: number | undefined;
  retryAfter?: string | undefined;
  failure?: string;
}

/** Sends bodies to a webhook. */
export interface WebhookClient {
  /** The host and the port of the sink. */
  readonly server: { readonly 'server.address': string; readonly 'server.port': number };
  /** Never rejects. `eventId` is the id of the CloudEvent in the body. `trace`: a `traceparent`. */
  post(text: string, eventId: string, trace?: string): Promise<PostResult>;
  /** Aborts the requests under way: each results in a failure. */
  abort(): void;
  close(): Promise<void>;
}

/** The webhook to send to. */
export interface WebhookTarget extends DeliveryOptions {
  /** Without user and password. */
  url: string;
  /** Sent with every delivery. Headers that deliveries set themselves are not among them. */
  headers: Readonly<Record<string, string>>;
  signingKeys: SigningKeys;
  /** Default: `application/json`. */
  contentType?: ContentType;
  /** Undefined for a webhook of the operator: it may be at any address. */
  guard?: SinkGuard | undefined;
  /** Adds the headers of Standard Webhooks. The secret is `whsec_` and base64. */
  standardWebhooks?: { readonly secret: string } | undefined;
}

/** The media type of a delivery: that of a CloudEvent in structured mode, or that of plain JSON. */
export type ContentType = 'application/json' | 'application/cloudevents+json';

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;
/** A connection attempt cannot be aborted, so it must be shorter than the service's stop. */
const CONNECT_WITHIN_MS = 5_000;
/** Sinks usually close an idle connection after five seconds or more. */
const KEEP_ALIVE_MS = 4_000;
const USER_AGENT = 'transferable-document-service';
/**
 * Only the status of an answer counts. A short, prompt body is read so that the connection can be reused. The
 * headers may be as long, which proxies add to.
 */
const MOST_ANSWER_BYTES = 64 * 1024;
const ANSWER_BODY_WITHIN_MS = 1_000;
const CONTINUE = 'HTTP/1.1 100';

/**
 * Creates a client. A request times out after `timeoutMs`; redirects are not followed. Informational answers
 * (1xx), which a sink may send first, are skipped.
 *
 * @param time its time of day decides at each attempt which key signs.
 * @param idle where connections are kept alive between deliveries. Undefined: none is kept.
 */
export function createWebhookClient(
  target: WebhookTarget,
  time: Time,
  idle?: IdleConnections,
): WebhookClient {
  const { url, timeoutMs } = target;
  const { pathname, search, hostname, port, protocol } = new URL(url);
  const place = { path: pathname + search, method: 'POST' } as const;
  const connections = connectionsTo(target, idle);
  const underWay = new Set<Exchange>();

  async function send(text: string, eventId: string, trace: string): Promise<Answered> {
    const body = Buffer.from(text, 'utf8');
    const headers = deliveryHeaders(target, { body, eventId, trace, now: time.now() });
    let bytes = 0;
    const connection = connections.take();
    const attempt = exchange(
      connection,
      { ...place, headers, body },
      {
        time,
        timeoutMs,
        late: () => new Error(`no answer within ${timeoutMs} ms`),
        bodyMs: ANSWER_BODY_WITHIN_MS,
        onData({ length }, _answer, _control, cut) {
          bytes += length;
          if (bytes > MOST_ANSWER_BYTES) cut();
        },
      },
    );
    underWay.add(attempt);
    try {
      return await attempt.answered;
    } finally {
      underWay.delete(attempt);
      connections.giveBack(connection);
    }
  }

  return {
    server: { 'server.address': hostname, 'server.port': Number(port || (protocol === 'https:' ? 443 : 80)) },
    async post(text, eventId, trace = traceOfEvent(eventId)) {
      try {
        const { status, headers } = await send(text, eventId, trace);
        return { status, retryAfter: [headers['retry-after']].flat()[0] };
      } catch (cause) {
        return { status: undefined, failure: connectionProblem(cause) };
      }
    },
    abort() {
      for (const attempt of underWay) attempt.abort(new Error('the service was stopped'));
    },
    close: () => connections.close(),
  };
}

/** The connections to a sink, with one delivery at a time each. Idle ones are in the list of the target. */
function connectionsTo({ url, timeoutMs, guard }: WebhookTarget, idle: IdleConnections | undefined) {
  const { origin, protocol } = new URL(url);
  const timeout = Math.min(timeoutMs, CONNECT_WITHIN_MS);
  const connector = guard
    ? guardedConnector(guard, protocol, timeout)
    : buildConnector(connectingWithin(timeout));
  const connect: buildConnector.connector = (options, callback) =>
    connector(options, (...opened) => {
      if (opened[1]) skipContinue(opened[1]);
      callback(...opened);
    });
  const keepAlive = { keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS };
  const limits = { maxHeaderSize: MOST_ANSWER_BYTES, headersTimeout: 0, bodyTimeout: 0 };
  const options = { connect, pipelining: idle ? 1 : 0, ...keepAlive, ...limits };
  const all = new Set<Client>();
  let free: Client[] = [];

  function open(): Client {
    const connection = new Client(origin, options);
    all.add(connection);
    return connection.on('disconnect', () => free.includes(connection) && drop(connection));
  }

  function drop(connection: Client): void {
    free = free.filter((kept) => kept !== connection);
    idle?.delete(connection);
    all.delete(connection);
    void connection.destroy();
  }

  return {
    take(this: void): Client {
      const connection = free.pop() ?? open();
      idle?.delete(connection);
      return connection;
    },
    giveBack(this: void, connection: Client): void {
      if (!connection.stats.connected) return drop(connection);
      free.push(connection);
      // It leaves `free` at once: the delivery for which it is closed may have the same sink.
      idle?.set(connection, () => drop(connection));
    },
    async close(this: void): Promise<void> {
      await Promise.all([...all].map((connection) => connection.destroy()));
    },
  };
}

/** Skips 100 Continue, which a sink may send first: undici takes it for an error. */
function skipContinue(socket: Duplex): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  socket.read = (size) => {
    const chunk = read(size);
    if (chunk?.toString('latin1', 0, CONTINUE.length) !== CONTINUE) return chunk;
    const rest = chunk.subarray(chunk.indexOf('\r\n\r\n') + 4);
    return rest.length > 0 ? rest : read(size);
  };
}

/**
 * The Ed25519 signature of a body that is sent now, and the id of its key. It covers exactly the bytes of the
 * body. It is deterministic, so every attempt under the same key carries the same one. This thread computes
 * it: to hand it to another takes as long.
 */
export function signatureOf(
  keys: SigningKeys,
  body: Buffer,
  now: number,
): { signature: string; key: SigningKey } {
  const key = signingKeyAt(keys, now);
  const signature = `ed25519=${sign(null, body, key.privateKey).toString('base64url')}`;
  return { signature, key };
}

/** The headers of a delivery that is sent now (docs/specification.md 8.1); the subscription's come first. */
export function deliveryHeaders(
  target: Pick<WebhookTarget, 'headers' | 'signingKeys' | 'contentType' | 'standardWebhooks'>,
  content: SignedContent,
): Record<string, string> {
  const { signature, key } = signatureOf(target.signingKeys, content.body, content.now);
  return {
    ...target.headers,
    'content-type': target.contentType ?? 'application/json',
    'user-agent': USER_AGENT,
    traceparent: content.trace,
    'X-Service-Signature': signature,
    'X-Service-Key-Id': key.id,
    ...(target.standardWebhooks && standardWebhookHeaders(content, target.standardWebhooks.secret, key)),
  };
}

/** A new secret of a subscription, `whsec_…`. */
export function newWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** A delivery to sign. */
interface SignedContent {
  eventId: string;
  /** Time of the attempt, in epoch milliseconds: receivers refuse old deliveries. */
  now: number;
  body: Buffer;
  /** A `traceparent`. */
  trace: string;
}

/**
 * The headers of Standard Webhooks (https://www.standardwebhooks.com), with two signatures: `v1`, an
 * HMAC-SHA256 under the secret, and `v1a`, an Ed25519 signature under the key that signs all deliveries.
 */
function standardWebhookHeaders(
  { eventId, now, body }: SignedContent,
  secret: string,
  { privateKey }: SigningKey,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  const content = Buffer.concat([Buffer.from(`${eventId}.${timestamp}.`), body]);
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const symmetric = createHmac('sha256', key).update(content).digest('base64');
  const asymmetric = sign(null, content, privateKey).toString('base64');
  return {
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${symmetric} v1a,${asymmetric}`,
  };
}
