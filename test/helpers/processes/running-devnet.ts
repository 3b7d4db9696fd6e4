import { type Devnet, type DevnetOptions, startDevnetWith } from '../../../devnet/start-devnet';
import { checkEvent } from '../receiver/schema-problems';
import { owned } from '../resources';

/**
 * Starts a devnet as users do. Events that violate their schema fail the test.
 *
 * @param settings of the service, which a devnet does not have.
 */
export async function runningDevnet(
  options: DevnetOptions = {},
  settings: Readonly<Record<string, string>> = {},
): Promise<Devnet & AsyncDisposable> {
  const devnet = await startDevnetWith(options, { onWebhook: checkEvent, settings });
  return owned(`devnet of ${devnet.serviceUrl}`, devnet, 'stop');
}
