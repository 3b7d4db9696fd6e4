import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { checkEvent } from '../receiver/schema-problems';
import { track } from '../resources';
import type { SeededRandom } from '../seeded-random';

/** A receiver of all subscriptions. Each posts to a path of its own. */
export interface SharedReceiver {
  url: string;
  /** The events that were accepted, by path, in order of arrival. */
  accepted: Map<string, CloudEvent[]>;
  close(): Promise<void>;
}

/** The share of deliveries that are answered with 500. */
const REFUSED = 0.02;

/** Starts one that refuses some deliveries. */
export async function startSharedReceiver(random: SeededRandom): Promise<SharedReceiver> {
  const accepted = new Map<string, CloudEvent[]>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const event = JSON.parse(Buffer.concat(chunks).toString()) as CloudEvent;
      checkEvent(event);
      if (random.chance(REFUSED)) return void response.writeHead(500).end();
      const path = request.url ?? '';
      const events = accepted.get(path) ?? [];
      accepted.set(path, events);
      events.push(event);
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const untrack = track(`shared receiver on ${url}`);
  return {
    url,
    accepted,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      untrack();
    },
  };
}
