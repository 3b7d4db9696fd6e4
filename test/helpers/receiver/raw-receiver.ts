import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { track } from '../resources';
import { checkEvent } from './schema-problems';
import type { Delivery } from './signed-delivery';

/**
 * A receiver that verifies no signature: it keeps the bytes and headers of each request and answers 204. It
 * checks events, and takes any other body.
 */
export interface RawReceiver {
  url: string;
  /** In the order of arrival. */
  deliveries: Delivery[];
  close(): Promise<void>;
}

/** Starts one on a free port. */
export async function startRawReceiver(): Promise<RawReceiver> {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      checkIfEvent(body);
      deliveries.push({ body, headers: request.headers as Record<string, string> });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const untrack = track(`raw receiver on ${url}`);
  return {
    url,
    deliveries,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      untrack();
    },
  };
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
