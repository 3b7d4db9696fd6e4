import { buffer } from 'node:stream/consumers';
import { serve, type TestServer } from '../http-server';
import { checkEvent } from './schema-problems';
import type { Delivery } from './signed-delivery';

/**
 * A receiver that verifies no signature: it keeps the bytes and headers of each request and answers 204. It
 * checks events, and takes any other body.
 */
export interface RawReceiver extends TestServer {
  /** In the order of arrival. */
  deliveries: Delivery[];
}

/** Starts one on a free port. */
export async function startRawReceiver(): Promise<RawReceiver> {
  const deliveries: Delivery[] = [];
  const server = await serve((request, response) => {
    void buffer(request).then((body) => {
      checkIfEvent(body);
      deliveries.push({ body, headers: request.headers as Record<string, string> });
      response.writeHead(204).end();
    });
  });
  return { ...server, deliveries };
}

function checkIfEvent(body: Buffer): void {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    return;
  }
  if (typeof value === 'object' && value !== null && 'specversion' in value) checkEvent(value);
}
