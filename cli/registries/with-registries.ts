import { systemClock } from '../../service/base/clock';
import { RequestError } from '../../service/base/errors';
import { loadConfig } from '../../service/config/config';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { createRegistries, type Registries } from '../../service/followed-registries/registries';
import { Refusal } from '../errors';

/**
 * Works on the registries of the service's database. A running service follows a change within seconds.
 *
 * @throws Refusal for every RequestError of the work: nothing was changed.
 */
export async function withRegistries<T>(work: (registries: Registries) => Promise<T>): Promise<T> {
  const settings = loadConfig();
  const database = await openDatabaseBesideService(settings);
  try {
    return await work(
      createRegistries({
        database,
        settings,
        clock: systemClock,
        statusOf: () => undefined,
        onChange: async () => undefined,
      }),
    );
  } catch (cause) {
    if (!(cause instanceof RequestError)) throw cause;
    throw new Refusal(cause.code, cause.message, { cause });
  } finally {
    await database.close();
  }
}
