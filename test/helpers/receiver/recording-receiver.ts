import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { SIGNATURE_HEADER, verifySignature } from '../../../receiver/verify';
import { systemTime } from '../../../service/base/time';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { serve } from '../http-server';
import { checkEvent } from './schema-problems';

/** One request, successful or not. */
export interface Delivery {
  /** The bytes that arrived. */
  body: Buffer;
  headers: IncomingHttpHeaders;
  event: CloudEvent;
  /** Whether the signature over these bytes is that of the service. */
  verified: boolean;
  /** 1 for the first delivery of an event. */
  attempt: number;
  arrivedAt: number;
}

/** Answers a delivery, or misbehaves like a broken receiver. */
export type Answer = (delivery: Delivery, response: ServerResponse) => void | Promise<void>;

/** A receiver that keeps every request, including repetitions, and answers as the test says. */
export interface RecordingReceiver extends AsyncDisposable {
  url: string;
  /** In the order in which they were complete. */
  deliveries: Delivery[];
  /** Changes the answers from now on. */
  answerWith(answer: Answer): void;
  close(): Promise<void>;
}

/** The answer of a receiver that works. */
export const accept: Answer = (_delivery, response) => void response.writeHead(204).end();

/** Starts it, on a free port unless one is given. */
export async function startRecordingReceiver(
  publicKeyFile: string,
  answer: Answer = accept,
  port = 0,
): Promise<RecordingReceiver> {
  const publicKey = createPublicKey(readFileSync(publicKeyFile));
  const deliveries: Delivery[] = [];
  const attempts = new Map<string, number>();
  let answerNow = answer;

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const verified = verifySignature(request.headers[SIGNATURE_HEADER], body, publicKey);
    const event = JSON.parse(body.toString()) as CloudEvent;
    // The port was free while another test's node refused connections. Its client asks there again.
    if ('jsonrpc' in event) return void response.writeHead(404).end();
    checkEvent(event);
    const attempt = (attempts.get(event.id) ?? 0) + 1;
    attempts.set(event.id, attempt);
    const delivery = {
      body,
      headers: request.headers,
      event,
      verified,
      attempt,
      arrivedAt: systemTime.now(),
    };
    deliveries.push(delivery);
    await answerNow(delivery, response);
  }

  const server = await serve((request, response) => {
    // A sender that dies in the middle of a request leaves nothing to record.
    receive(request, response).catch(() => request.socket.destroy());
  }, port);
  return { ...server, url: `${server.url}/`, deliveries, answerWith: (next) => void (answerNow = next) };
}
