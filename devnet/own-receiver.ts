import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ConfigurationError } from '../service/base/errors';
import { startReceiver, type RunningReceiver } from '../receiver/app';
import type { ServiceEvent } from '../receiver/event-schemas';
import { onlyKey } from '../receiver/public-keys';
import { dedupeKeyOf, idKeyOf } from '../receiver/received-event';
import type { ReceiverControl } from './devnet';

/** The reference receiver in this process. */
export interface OwnReceiver extends ReceiverControl, RunningReceiver {}

/** Starts the reference receiver. `onEvent` gets each verified event once, after it is stored. */
export async function startOwnReceiver(options: {
  port: number;
  publicKeyFile: string;
  eventsFile: string;
  /** Whether retracted events come again under another id. */
  retractions: boolean;
  onEvent: (event: ServiceEvent) => void;
}): Promise<OwnReceiver> {
  const { port, publicKeyFile, eventsFile, retractions, onEvent } = options;
  let refusal: number | undefined;
  const { url, close } = await startReceiver({
    host: '127.0.0.1',
    port,
    publicKeys: onlyKey(createPublicKey(readFileSync(publicKeyFile))),
    eventsFile,
    keyOf: retractions ? idKeyOf : dedupeKeyOf,
    onEvent,
    onRetraction: onEvent,
    onTest: onEvent,
    refusal: () => refusal,
  });
  return {
    url: `${url}/webhook`,
    close,
    refuse(status = 503) {
      if (!Number.isSafeInteger(status) || status < 300 || status > 599)
        throw new ConfigurationError(
          'ARGUMENT_INVALID',
          `The status is ${status}: give one from 300 to 599.`,
        );
      refusal = status;
    },
    accept: () => void (refusal = undefined),
  };
}
