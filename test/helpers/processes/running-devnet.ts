import { type Devnet, type DevnetOptions, startDevnetWith } from '../../../devnet/start-devnet';
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
