import type { KeyObject } from 'node:crypto';
import { Agent, request, type Dispatcher } from 'undici';
import { messageOf } from '../base/errors';
import { splitCredentials } from '../base/url-credentials';
import { SIGNATURE_HEADER, signatureOf } from './signature';

/** What the receiver answered, or why there was no answer. */
export type PostResult =
  { status: number; retryAfter: string | undefined } | { status: undefined; failure: string };

/** Sends one body to the webhook. Never rejects. */
export interface WebhookClient {
  post(body: string): Promise<PostResult>;
  /** Gives up what is under way: each such post results in a failure. */
  abort(): void;
  close(): Promise<void>;
}

/** Where to send to. */
export interface WebhookTarget {
  /** A user and a password in it are sent as Basic authorization. */
  url: string;
  /** Sent with every delivery; the names that deliveries have by themselves are not among them. */
  headers: Readonly<Record<string, string>>;
  signingKey: KeyObject;
  timeoutMs: number;
  connections: number;
}

/** A connection that is being made cannot be given up: it must not outlast the service's stop. */
const CONNECT_WITHIN_MS = 5_000;
const USER_AGENT = 'transferable-document-service';
/**
 * Of an answer only its status counts. Its body is read so far that the connection can be used again, if it
 * is short and comes soon.
 */
const MOST_ANSWER_BYTES = 64 * 1024;
const ANSWER_BODY_WITHIN_MS = 1_000;

/**
 * A client that keeps its connections open between deliveries and gives up after `timeoutMs`. Redirects are
 * not followed.
 */
export function createWebhookClient(target: WebhookTarget): WebhookClient {
  const { timeoutMs, signingKey } = target;
  const { url, authorization } = splitCredentials(target.url);
  const connect = { timeout: Math.min(timeoutMs, CONNECT_WITHIN_MS) };
  const agent = new Agent({ connections: target.connections, connect });
  const underWay = new Set<AbortController>();
  return {
    async post(text) {
      const body = Buffer.from(text, 'utf8');
      const attempt = new AbortController();
      const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      underWay.add(attempt);
      try {
        const answer = await request(url, {
          dispatcher: agent,
          method: 'POST',
          headers: {
            ...target.headers,
            ...(authorization && { authorization }),
            'content-type': 'application/json',
            'user-agent': USER_AGENT,
            [SIGNATURE_HEADER]: await signatureOf(body, signingKey),
          },
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

async function drop(body: Dispatcher.ResponseData['body']): Promise<void> {
  const patience = new AbortController();
  // Not AbortSignal.timeout: each of those lives out its time, and there may be thousands a second.
  const timer = setTimeout(() => patience.abort(), ANSWER_BODY_WITHIN_MS);
  await body.dump({ limit: MOST_ANSWER_BYTES, signal: patience.signal }).catch(() => undefined);
  clearTimeout(timer);
  body.destroy();
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function failureOf(cause: unknown): string {
  // A refused connection to a name with several addresses is an AggregateError without a message.
  if (cause instanceof AggregateError) return cause.errors.map(messageOf).join('; ');
  return messageOf(cause);
}
