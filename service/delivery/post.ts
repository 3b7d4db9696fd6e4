import { createHmac, randomBytes, sign } from 'node:crypto';
import { Agent as HttpAgent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import type { Duplex } from 'node:stream';
import { buildConnector } from 'undici';
import type { Clock } from '../base/clock';
import { messageOf } from '../base/errors';
import { signingKeyAt, type SigningKey, type SigningKeys } from '../base/signing-keys';
import type { IdleConnections } from './delivery-slots';
import { guardedConnector, type SinkGuard } from './guarded-connector';

/** The receiver's answer, or the reason why there was none. */
export type PostResult =
  { status: number; retryAfter: string | undefined } | { status: undefined; failure: string };

/** Sends bodies to a webhook. */
export type WebhookClient = ReturnType<typeof createWebhookClient>;

/** The webhook to send to. */
export interface WebhookTarget {
  /** Without user and password. */
  url: string;
  /** Sent with every delivery. Headers that deliveries set themselves are not among them. */
  headers: Readonly<Record<string, string>>;
  signingKeys: SigningKeys;
  /** Its time decides at each attempt which key signs. */
  clock: Clock;
  timeoutMs: number;
  /** Where connections are kept alive between deliveries. Undefined: none is kept. */
  idle?: IdleConnections;
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
/** Only the status of an answer counts. A short, prompt body is read so that the connection can be reused. */
const MOST_ANSWER_BYTES = 64 * 1024;
const ANSWER_BODY_WITHIN_MS = 1_000;

/**
 * Creates a client. A request times out after `timeoutMs`; redirects are not followed. Informational answers
 * (1xx), which a sink may send first, are skipped: undici would take 100 Continue for an error.
 */
export function createWebhookClient(target: WebhookTarget) {
  const { url, timeoutMs, clock } = target;
  // Parsed once: there may be thousands of deliveries a second.
  const place = urlToHttpOptions(new URL(url));
  const agent = agentOf(url, target);
  const underWay = new Set<ClientRequest>();

  async function send(text: string, eventId: string): Promise<IncomingMessage> {
    const body = Buffer.from(text, 'utf8');
    const headers = deliveryHeaders(target, { body, eventId, now: clock.now() });
    const attempt = request({ ...place, agent, method: 'POST', headers });
    const late = new Error(`no answer within ${timeoutMs} ms`);
    const timer = setTimeout(() => attempt.destroy(late), timeoutMs);
    underWay.add(attempt);
    try {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        attempt.on('response', resolve).on('error', reject).end(body);
      });
      await drop(answer);
      return answer;
    } finally {
      clearTimeout(timer);
      underWay.delete(attempt);
    }
  }

  return {
    /** Never rejects. `eventId` is the id of the CloudEvent in the body. */
    async post(text: string, eventId: string): Promise<PostResult> {
      try {
        const { statusCode = 0, headers } = await send(text, eventId);
        return { status: statusCode, retryAfter: headers['retry-after'] };
      } catch (cause) {
        return { status: undefined, failure: failureOf(cause) };
      }
    },
    /** Aborts the requests under way: each results in a failure. */
    abort(): void {
      for (const attempt of underWay) attempt.destroy(new Error('the service was stopped'));
    },
    close: async () => agent.destroy(),
  };
}

/** Opens the connections to a sink, and enters those that are idle in the target's list. */
function agentOf(url: string, { timeoutMs, guard, idle }: WebhookTarget): HttpAgent {
  const { protocol, hostname, host, port } = new URL(url);
  const timeout = Math.min(timeoutMs, CONNECT_WITHIN_MS);
  const connect = guard ? guardedConnector(guard, protocol, timeout) : buildConnector({ timeout });
  const place = { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), host, port };
  const options = { keepAlive: idle !== undefined, timeout: KEEP_ALIVE_MS, maxFreeSockets: Infinity };
  const agent = protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
  agent.createConnection = (_options, callback) => {
    connect(place, (...opened) => {
      const [, socket] = opened;
      socket?.once('close', () => idle?.delete(socket));
      (callback as buildConnector.Callback)(...opened);
    });
    return undefined;
  };
  if (idle === undefined) return agent;
  // Its type says that it returns nothing. It returns false if the sink closes the connection soon.
  const keep = agent.keepSocketAlive.bind(agent) as (socket: Duplex) => boolean;
  const reuse = agent.reuseSocket.bind(agent);
  agent.keepSocketAlive = (socket) => {
    const isKept = keep(socket);
    if (isKept) idle.add(socket);
    return isKept;
  };
  agent.reuseSocket = (socket, attempt) => {
    idle.delete(socket);
    reuse(socket, attempt);
  };
  return agent;
}

/**
 * The headers of a delivery that is sent now (docs/specification.md 8.1). Those of the subscription come
 * first. The Ed25519 signature covers exactly the bytes of the body. It is deterministic, so every attempt
 * under the same key carries the same one. This thread computes it: to hand it to another takes as long.
 */
export function deliveryHeaders(
  target: Pick<WebhookTarget, 'headers' | 'signingKeys' | 'contentType' | 'standardWebhooks'>,
  content: SignedContent,
): Record<string, string> {
  const key = signingKeyAt(target.signingKeys, content.now);
  return {
    ...target.headers,
    'content-type': target.contentType ?? 'application/json',
    'user-agent': USER_AGENT,
    'X-Service-Signature': `ed25519=${sign(null, content.body, key.privateKey).toString('base64url')}`,
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

async function drop(answer: IncomingMessage): Promise<void> {
  let bytes = 0;
  answer.on('data', ({ length }: Buffer) => {
    bytes += length;
    if (bytes > MOST_ANSWER_BYTES) answer.destroy();
  });
  const timer = setTimeout(() => answer.destroy(), ANSWER_BODY_WITHIN_MS);
  await new Promise((resolve) => answer.on('close', resolve));
  clearTimeout(timer);
}

function failureOf(cause: unknown): string {
  // Connecting to a name with several addresses fails with an AggregateError, which has no message.
  if (cause instanceof AggregateError) return cause.errors.map(messageOf).join('; ');
  return messageOf(cause);
}
