import { existsSync } from 'node:fs';
import { type Devnet, type DevnetOptions, startDevnetWith } from '../../../devnet/start-devnet';
import { checkEvent } from '../receiver/schema-problems';
import { owned } from '../resources';

/**
 * Starts a devnet as users do. Events that violate their schema fail the test, and a temporary folder that is
 * left when it has ended.
 *
 * @param settings of the service, which a devnet does not have.
 */
export async function runningDevnet(
  options: DevnetOptions = {},
  settings: Readonly<Record<string, string>> = {},
): Promise<Devnet & AsyncDisposable> {
  const devnet = await startDevnetWith(options, { onWebhook: checkEvent, settings });
  const { stop, folder } = devnet;
  devnet.stop = async () => {
    await stop();
    if (options.folder === undefined && existsSync(folder)) throw new Error(`${folder} is left`);
  };
  return owned(`devnet of ${devnet.serviceUrl}`, devnet, 'stop');
}
