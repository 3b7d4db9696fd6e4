import { Agent, request, type Dispatcher } from 'undici';
import type { Clock } from '../base/clock';
import { messageOf } from '../base/errors';
import { signingKeyAt, type SigningKeys } from '../base/signing-keys';
import { splitCredentials } from '../base/url-credentials';
import { guardedConnector, type SinkGuard } from './guarded-connector';
import { signatureHeaders } from './signature';
import { standardWebhookHeaders, type SignedContent } from './standard-webhooks';

/** The receiver's answer, or the reason why there was none. */
export type PostResult =
  { status: number; retryAfter: string | undefined } | { status: undefined; failure: string };

/** Sends one body to the webhook. Never rejects. */
export interface WebhookClient {
  /** `eventId` is the id of the CloudEvent in the body. */
  post(body: string, eventId: string): Promise<PostResult>;
  /** Aborts the requests under way: each results in a failure. */
  abort(): void;
  close(): Promise<void>;
}

/** The webhook to send to. */
export interface WebhookTarget {
  /** A user and password in the URL are sent as Basic authorization. */
  url: string;
  /** Sent with every delivery. Headers that deliveries set themselves are not among them. */
  headers: Readonly<Record<string, string>>;
  signingKeys: SigningKeys;
  /** Its time decides at each attempt which key signs. */
  clock: Clock;
  timeoutMs: number;
  connections: number;
  /** Default: `application/json`. */
  contentType?: ContentType;
  /** Undefined for a webhook of the operator: it may be at any address. */
  guard?: SinkGuard | undefined;
  /** Adds the headers of Standard Webhooks. The secret is `whsec_` and base64. */
  standardWebhooks?: { readonly secret: string } | undefined;
}

/** The media type of a delivery: that of a CloudEvent in structured mode, or that of plain JSON. */
export type ContentType = 'application/json' | 'application/cloudevents+json';

/** A connection attempt cannot be aborted, so it must be shorter than the service's stop. */
const CONNECT_WITHIN_MS = 5_000;
const USER_AGENT = 'transferable-document-service';
/** Only the status of an answer counts. A short, prompt body is read so that the connection can be reused. */
const MOST_ANSWER_BYTES = 64 * 1024;
const ANSWER_BODY_WITHIN_MS = 1_000;

/**
 * Creates a client that keeps connections alive between deliveries. A request times out after `timeoutMs`;
 * redirects are not followed.
 */
export function createWebhookClient(target: WebhookTarget): WebhookClient {
  const { timeoutMs, clock, guard } = target;
  const { url } = splitCredentials(target.url);
  const timeout = Math.min(timeoutMs, CONNECT_WITHIN_MS);
  const connect = guard ? guardedConnector(guard, new URL(url).protocol, timeout) : { timeout };
  const agent = new Agent({ connections: target.connections, connect });
  const underWay = new Set<AbortController>();

  return {
    async post(text, eventId) {
      const body = Buffer.from(text, 'utf8');
      const attempt = new AbortController();
      const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      underWay.add(attempt);
      try {
        const answer = await request(url, {
          dispatcher: agent,
          method: 'POST',
          headers: deliveryHeaders(target, { body, eventId, now: clock.now() }),
          body,
          signal: attempt.signal,
        });
        await drop(answer.body);
        return { status: answer.statusCode, retryAfter: firstOf(answer.headers['retry-after']) };
      } catch (cause) {
        return { status: undefined, failure: failureOf(cause) };
      } finally {
        clearTimeout(timer);
        underWay.delete(attempt);
      }
    },
    abort() {
      for (const attempt of underWay) attempt.abort(new Error('the service was stopped'));
    },
    close: () => agent.destroy(),
  };
}

/** The headers of a delivery that is sent now. Those of the operator come first. */
export function deliveryHeaders(
  target: Pick<WebhookTarget, 'url' | 'headers' | 'signingKeys' | 'contentType' | 'standardWebhooks'>,
  content: SignedContent,
): Record<string, string> {
  const { authorization } = splitCredentials(target.url);
  const key = signingKeyAt(target.signingKeys, content.now);
  return {
    ...target.headers,
    ...(authorization && { authorization }),
    'content-type': target.contentType ?? 'application/json',
    'user-agent': USER_AGENT,
    ...signatureHeaders(content.body, key),
    ...(target.standardWebhooks && standardWebhookHeaders(content, target.standardWebhooks.secret, key)),
  };
}

async function drop(body: Dispatcher.ResponseData['body']): Promise<void> {
  const patience = new AbortController();
  // AbortSignal.timeout would keep its timer to the end, and there may be thousands of answers a second.
  const timer = setTimeout(() => patience.abort(), ANSWER_BODY_WITHIN_MS);
  await body.dump({ limit: MOST_ANSWER_BYTES, signal: patience.signal }).catch(() => undefined);
  clearTimeout(timer);
  body.destroy();
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function failureOf(cause: unknown): string {
  // Connecting to a name with several addresses fails with an AggregateError, which has no message.
  if (cause instanceof AggregateError) return cause.errors.map(messageOf).join('; ');
  return messageOf(cause);
}
