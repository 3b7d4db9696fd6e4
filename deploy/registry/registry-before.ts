import { findNetwork } from '../../service/chain/networks';
import { readConfigFile } from '../../service/config/followed-registries';
import { pathsOf } from '../../service/config/config';
import type { Database } from '../../service/database/database';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { codeOf, messageOf } from '../../service/base/errors';
import { registryName } from '../../service/base/registry-name';
import { countUnfinished } from '../../service/journal/read-issuances';
import { findFeeds, registryOfFeed } from '../../service/outbox/feeds';
import { feedFiguresOf } from '../../service/outbox/outbox-figures';
import { readGivenUp, readRegistries } from '../../service/followed-registries/stored-registries';
import { settingOf, type Settings } from '../../service/config/settings';
import { commandFor } from '../../service/config/tenant';
import type { DeployContext } from './context';
import { isSame } from './infrastructure';

/**
 * Warns if TOKEN_REGISTRY_ADDRESS named another registry. The service follows only the registry of that
 * setting, those of service.config.json and those that were added, so work of the earlier registry may be
 * left undone.
 *
 * @param before the address that TOKEN_REGISTRY_ADDRESS named.
 */
export async function leftBehind(
  { tenant, mask }: Pick<DeployContext, 'tenant' | 'mask'>,
  settings: Settings,
  before: string,
): Promise<string[]> {
  try {
    const { dataDir, serviceConfig } = pathsOf(tenant.envFile, settings);
    const { registries = [] } = readConfigFile(serviceConfig);
    const listed = registries.map(({ network, address }) => registryName(network.chainId, address));
    const databaseUrl = settingOf(settings, 'DATABASE_URL');
    const database = await openDatabaseBesideService({ dataDir, databaseUrl });
    try {
      const command = (words: string): string => commandFor(tenant.envFile, `tdoc registries ${words}`);
      const lines = await eventLines(database, before, listed, command);
      return [...lines, ...(await documentLines(database, before))];
    } finally {
      await database.close();
    }
  } catch (error) {
    // No service has run here, so nothing can be left.
    if (codeOf(error) === 'DATABASE_MISSING') return [];
    const reason = mask(messageOf(error));
    return [`warning: the waiting events of the previous registry ${before} cannot be counted: ${reason}`];
  }
}

async function eventLines(
  { db }: Database,
  before: string,
  listed: readonly string[],
  command: (words: string) => string,
): Promise<string[]> {
  const added = (await readRegistries(db)).map(({ chainId, address }) => registryName(chainId, address));
  const followed = [...listed, ...added, ...(await readGivenUp(db))];
  const feeds = (await findFeeds(db, before)).filter((feed) => !followed.includes(registryOfFeed(feed)));
  const waiting = new Map((await feedFiguresOf(db, feeds)).map((one) => [one.feed, one.undelivered]));
  return feeds.flatMap((feed) => {
    const registry = registryOfFeed(feed);
    const [chainId = ''] = registry.split(':');
    const network = findNetwork(chainId)?.name ?? chainId;
    const named = `--registry ${before} --network ${network}`;
    return [
      `warning: no setting follows the previous registry ${registry} any more. ` +
        "From the service's next start on",
      `  its events are not delivered; ${waiting.get(feed) ?? 0} wait now. To deliver them:`,
      `  ${command(`add ${named}`)}`,
      `  To give them up: ${command(`remove ${named} --force`)}`,
    ];
  });
}

async function documentLines({ db }: Database, before: string): Promise<string[]> {
  const journals = await countUnfinished(db);
  return journals
    .filter(({ scope }) => isSame(scope.registryAddress, before))
    .map(
      ({ scope: { issuer }, unfinished }) =>
        `warning: documents of ${issuer} that are being issued in the previous registry ${before}: ` +
        `${unfinished}. To finish them, set TOKEN_REGISTRY_ADDRESS back until GET /health shows no mints.`,
    );
}
