import { isAddress } from 'ethers';
import { systemTime } from '../../service/base/time';
import { ConfigurationError } from '../../service/base/errors';
import { loadConfig, type Config } from '../../service/config/config';
import type { Database } from '../../service/database/database';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { parseTokenId } from '../../service/registry/token-id-forms';
import { shown } from '../../service/config/setting-types';
import { invalid } from '../errors';

/**
 * Opens the service's database for a command, and closes it afterwards. The service may be running: it sees
 * changes within seconds.
 *
 * @throws ConfigurationError, also for wrong settings.
 */
export async function withDatabase<T>(work: (database: Database, config: Config) => Promise<T>): Promise<T> {
  const config = loadConfig();
  const database = await openDatabaseBesideService(systemTime, config);
  try {
    return await work(database, config);
  } finally {
    await database.close();
  }
}

/**
 * Checks `--registry`: an address, or a chain id and an address if the same address is on several chains.
 *
 * @throws ConfigurationError ARGUMENT_INVALID.
 */
export function storedRegistryOf(text: string | undefined): string | undefined {
  if (text === undefined || isAddress(text.replace(/^\d+:/, ''))) return text;
  throw invalid(
    `--registry ${text} is not an address: 0x and 40 hexadecimal digits, ` +
      'or a chain id, a colon and an address.',
  );
}

/**
 * Reads `--token`.
 *
 * @throws ConfigurationError ARGUMENT_INVALID; RequestError TOKEN_ID_INVALID.
 */
export function tokenIdOf(text: string): bigint {
  const tokenId = parseTokenId(text);
  if (tokenId !== undefined) return tokenId;
  throw invalid(
    `--token ${shown(text)} is not a token id: 64 hexadecimal digits, 0x and hexadecimal digits, ` +
      'or decimal digits.',
  );
}

/** The error for a subscription that is not in the database. */
export function unknownSubscription(name: string): ConfigurationError {
  const remedy = 'List the subscriptions with `npx tdoc subscriptions list`.';
  return new ConfigurationError('SUBSCRIPTION_UNKNOWN', `There is no subscription ${name}. ${remedy}`, {
    remedy,
  });
}
