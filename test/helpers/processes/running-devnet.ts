import { type Devnet, type DevnetOptions, startDevnetWith } from '../../../devnet/start-devnet';
import type { Wanted } from '../../../devnet/receiver';
import type { ChainEvent } from '../../../client/events';
import { checkEvent } from '../receiver/schema-problems';
import { track } from '../resources';

/**
 * Starts a devnet as users do. The test must stop it. Events that violate their schema fail the test.
 *
 * @param settings of the service, which a devnet does not have.
 */
export async function runningDevnet(
  options: DevnetOptions = {},
  settings: Readonly<Record<string, string>> = {},
): Promise<Devnet> {
  const devnet = await startDevnetWith(options, { onWebhook: checkEvent, settings });
  const untrack = track(`devnet of ${devnet.serviceUrl}`);
  const { stop } = devnet;
  devnet.stop = async () => {
    await stop();
    untrack();
  };
  return devnet;
}

/** Takes the next webhooks that match, all of which must be events of the chain. */
export async function takeEvents(
  { webhooks }: Devnet,
  count: number,
  wanted: Wanted = {},
): Promise<ChainEvent[]> {
  const events: ChainEvent[] = [];
  while (events.length < count) {
    const event = await webhooks.next(wanted);
    if (!('data' in event) || !('payload' in event.data)) throw new Error(`${event.type} is no chain event`);
    events.push(event as ChainEvent);
  }
  return events;
}
