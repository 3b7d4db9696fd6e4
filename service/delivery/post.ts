import type { KeyObject } from 'node:crypto';
import { Agent, request, type Dispatcher } from 'undici';
import { messageOf } from '../errors';
import { SIGNATURE_HEADER, signatureOf } from './signature';

/** What the receiver answered, or why there was no answer. */
export type PostResult =
  { status: number; retryAfter: string | undefined } | { status: undefined; failure: string };

/** Sends one body to the webhook. Never rejects. */
export interface WebhookClient {
  post(body: string): Promise<PostResult>;
  close(): Promise<void>;
}

const USER_AGENT = 'transferable-document-service';
/** Of an answer only its status counts. Its body is read so far that the connection can be used again, if it is short and comes soon. */
const MOST_ANSWER_BYTES = 64 * 1024;
const ANSWER_BODY_WITHIN_MS = 1_000;

/** A client that keeps its connections open between deliveries and gives up after `timeoutMs`. Redirects are not followed. */
export function createWebhookClient(options: {
  url: string;
  signingKey: KeyObject;
  timeoutMs: number;
  connections: number;
}): WebhookClient {
  const agent = new Agent({ connections: options.connections, connect: { timeout: options.timeoutMs } });
  return {
    async post(text) {
      const body = Buffer.from(text, 'utf8');
      try {
        const answer = await request(options.url, {
          dispatcher: agent,
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'user-agent': USER_AGENT,
            [SIGNATURE_HEADER]: signatureOf(body, options.signingKey),
          },
          body,
          signal: AbortSignal.timeout(options.timeoutMs),
        });
        await drop(answer.body);
        return { status: answer.statusCode, retryAfter: firstOf(answer.headers['retry-after']) };
      } catch (cause) {
        return { status: undefined, failure: failureOf(cause, options.timeoutMs) };
      }
    },
    close: () => agent.destroy(),
  };
}

async function drop(body: Dispatcher.ResponseData['body']): Promise<void> {
  const signal = AbortSignal.timeout(ANSWER_BODY_WITHIN_MS);
  await body.dump({ limit: MOST_ANSWER_BYTES, signal }).catch(() => undefined);
  body.destroy();
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function failureOf(cause: unknown, timeoutMs: number): string {
  if (cause instanceof Error && cause.name === 'TimeoutError') return `no answer within ${timeoutMs} ms`;
  // A refused connection to a name with several addresses is an AggregateError without a message.
  if (cause instanceof AggregateError) return cause.errors.map(messageOf).join('; ');
  return messageOf(cause);
}
