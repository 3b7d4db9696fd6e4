import { text } from 'node:stream/consumers';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { serve, type TestServer } from '../http-server';
import { checkEvent } from '../receiver/schema-problems';
import type { SeededRandom } from '../seeded-random';

/** A receiver of all subscriptions. Each posts to a path of its own. */
export interface SharedReceiver extends TestServer {
  /** The events that were accepted, by path, in order of arrival. */
  accepted: Map<string, CloudEvent[]>;
}

/** The share of deliveries that are answered with 500. */
const REFUSED = 0.02;

/** Starts one that refuses some deliveries. */
export async function startSharedReceiver(random: SeededRandom): Promise<SharedReceiver> {
  const accepted = new Map<string, CloudEvent[]>();
  const server = await serve((request, response) => {
    void text(request).then((body) => {
      const event = JSON.parse(body) as CloudEvent;
      checkEvent(event);
      if (random.chance(REFUSED)) return void response.writeHead(500).end();
      const path = request.url ?? '';
      const events = accepted.get(path) ?? [];
      accepted.set(path, events);
      events.push(event);
      response.writeHead(204).end();
    });
  });
  return { ...server, accepted };
}
