import { randomBytes, randomUUID } from 'node:crypto';
import { loadConfig, type Config } from '../../service/config/config';
import { systemClock } from '../../service/base/clock';
import type { Database } from '../../service/database/database';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { createSubscriptions, type Subscriptions } from '../../service/subscriptions/manage-subscriptions';
import { createSecretsCipher } from '../../service/subscriptions/secrets';

/** The subscriptions in the database of a service. */
export interface OpenSubscriptions {
  config: Config;
  database: Database;
  subscriptions: Subscriptions;
}

/**
 * Opens the database for a command. A running service notices the changes within a second.
 *
 * @throws ConfigurationError, also for wrong settings.
 */
export async function withSubscriptions<T>(work: (open: OpenSubscriptions) => Promise<T>): Promise<T> {
  const config = loadConfig();
  const database = await openDatabaseBesideService(config);
  try {
    const subscriptions = createSubscriptions({
      database,
      cipher: createSecretsCipher(config.secretsKey, randomBytes),
      rules: { allowPrivate: config.allowPrivateSinks, allowLoopback: config.network.local },
      signingKeys: config.signingKeys,
      clock: systemClock,
      newId: randomUUID,
      randomBytes,
      onChanged: async () => undefined,
    });
    return await work({ config, database, subscriptions });
  } finally {
    await database.close();
  }
}
