import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startReceiver as startRealReceiver } from '../../../receiver/receiver';
import { onlyKey, type FindKey } from '../../../receiver/verify';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { owned } from '../resources';
import { checkEvent } from './schema-problems';

/** The reference receiver, with the events that it verified and stored, in the order of arrival. */
export interface RunningReceiver extends AsyncDisposable {
  url: string;
  events: CloudEvent[];
  problems: { status?: number; reason: string }[];
  close(): Promise<void>;
}

/**
 * Starts the reference receiver, on a free port unless one is given.
 *
 * @param keys the service's public keys, or the file of its only one.
 */
export async function startReceiver(
  folder: string,
  keys: string | FindKey,
  port = 0,
): Promise<RunningReceiver> {
  const events: CloudEvent[] = [];
  const problems: RunningReceiver['problems'] = [];
  const receiver = await startRealReceiver({
    findKey: typeof keys === 'string' ? onlyKey(createPublicKey(readFileSync(keys))) : keys,
    eventsFile: join(folder, 'received-events.jsonl'),
    host: '127.0.0.1',
    port,
    onEvent(event) {
      checkEvent(event);
      if ('transactionHash' in event.data) events.push(event as CloudEvent);
    },
    onProblem: (problem) => problems.push(problem),
  });
  const { url } = receiver;
  const running = { url, events, problems, close: () => receiver.close() };
  return owned(`receiver on ${url}`, running, 'close');
}
