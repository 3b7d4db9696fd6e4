import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ConfigurationError } from '../service/base/errors';
import { isKnown, type ServiceEvent } from '../client/events';
import { startReceiver, type RunningReceiver } from '../receiver/receiver';
import { onlyKey } from '../receiver/verify';
import type { ReceiverControl } from './devnet';

/** The reference receiver in this process. */
export interface OwnReceiver extends ReceiverControl, RunningReceiver {}

/** Starts the reference receiver. `onEvent` gets each verified event in order, after it is stored. */
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
    findKey: onlyKey(createPublicKey(readFileSync(publicKeyFile))),
    eventsFile,
    retractions,
    onEvent: (event) => (isKnown(event) ? onEvent(event) : undefined),
    onProblem: ({ reason }) => {
      if (refusal === undefined) console.error(`receiver: ${reason}`);
    },
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
