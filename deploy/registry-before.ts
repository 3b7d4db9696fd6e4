import { maskSecrets } from '../cli/errors';
import { systemTime } from '../service/base/time';
import { codeOf, messageOf } from '../service/base/errors';
import { registryName } from '../service/base/registry-name';
import { findNetwork } from '../service/chain/networks';
import { readConfigFile } from '../service/config/followed-registries';
import { settingOf, type Settings } from '../service/config/settings';
import { commandFor, pathsOf } from '../service/config/tenant';
import { openDatabaseBesideService } from '../service/database/open-database';
import { readRegistries } from '../service/followed-registries/stored-registries';
import { unfollowedOf } from '../service/observability/unfollowed';

/**
 * Warns if TOKEN_REGISTRY_ADDRESS named another registry. The service follows only the registry of that
 * setting, those of service.config.json and those that were added, so work of the earlier registry may be
 * left undone.
 *
 * @param before the address that TOKEN_REGISTRY_ADDRESS named.
 */
export async function leftBehind(envFile: string, settings: Settings, before: string): Promise<string[]> {
  try {
    const { dataDir, serviceConfig } = pathsOf(envFile, settings);
    const listed = readConfigFile(serviceConfig).registries ?? [];
    const databaseUrl = settingOf(settings, 'DATABASE_URL');
    const database = await openDatabaseBesideService(systemTime, { dataDir, databaseUrl });
    try {
      const { db } = database;
      const { chainId } = settingOf(settings, 'NET');
      const registries = [
        ...listed.map(({ network, address }) => registryName(network.chainId, address)),
        ...(await readRegistries(db)).map((added) => registryName(added.chainId, added.address)),
      ];
      // A service that is running still does its work until it is started again.
      const ofNobody = { db, isRightTaken: () => Promise.resolve(false) };
      const { deliveries, issuances } = await unfollowedOf(ofNobody, {
        chainId,
        registries,
        scope: undefined,
      });
      const isBefore = ({ registry }: { registry: string }) => registry.endsWith(`:${before.toLowerCase()}`);
      return [
        ...deliveries.filter(isBefore).flatMap(({ registry, undelivered }) => {
          const [id = ''] = registry.split(':');
          const named = `--registry ${before} --network ${findNetwork(id)?.name ?? id}`;
          return [
            `warning: no setting follows the previous registry ${registry} any more. ` +
              "From the service's next start on",
            `  its events are not delivered; ${undelivered} wait now. To deliver them:`,
            `  ${commandFor(envFile, `tdoc registries add ${named}`)}`,
            `  To give them up: ${commandFor(envFile, `tdoc registries remove ${named} --force`)}`,
          ];
        }),
        ...issuances
          .filter(isBefore)
          .map(
            ({ issuer, unfinished }) =>
              `warning: documents of ${issuer} that are being issued in the previous registry ${before}: ` +
              `${unfinished}. To finish them, set TOKEN_REGISTRY_ADDRESS back until GET /health ` +
              'shows no mints.',
          ),
      ];
    } finally {
      await database.close();
    }
  } catch (error) {
    // No service has run here, so nothing can be left.
    if (codeOf(error) === 'DATABASE_MISSING') return [];
    const reason = maskSecrets(messageOf(error));
    return [`warning: the waiting events of the previous registry ${before} cannot be counted: ${reason}`];
  }
}
