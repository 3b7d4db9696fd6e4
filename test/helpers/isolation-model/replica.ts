import pino from 'pino';
import { createAccessKeys, type AccessKeys } from '../../../service/access/access-keys';
import { createAnswers } from '../../../service/answers/answers';
import type { CheckingPool } from '../../../service/answers/checking-pool';
import { createLifecycle, type Lifecycle } from '../../../service/base/lifecycle';
import { repeat } from '../../../service/base/time';
import { findNetwork, type Network } from '../../../service/chain/networks';
import type { Config } from '../../../service/config/config';
import type { Database } from '../../../service/database/database';
import { listDeliveries } from '../../../service/outbox/deliveries';
import { redeliverTo } from '../../../service/outbox/enqueue-stored';
import { createEventFetching } from '../../../service/subscriptions/fetch-events';
import { createSubscriptions } from '../../../service/subscriptions/manage-subscriptions';
import { startHttpApp } from '../processes/http-app';
import { signingKeysOfTest } from '../receiver/webhook-to';
import { tellOfStatements, type VirtualTime } from '../virtual-time';
import { REGISTRIES } from './sight';

export const ADMIN_KEY = 'the-admin-key-of-the-model-0123456789';
export const READ_KEY = 'the-read-key-of-the-model-0123456789';
/** How long after the end of a key its subscriptions may still deliver, as docs/subscriptions.md says. */
export const PAUSE_WITHIN_MS = 5_000;

/** A process of the service, as far as keys with a scope reach. */
export interface Replica {
  url: string;
  database: Database;
  keys: AccessKeys;
  lifecycle: Lifecycle;
  stop(): Promise<void>;
}

const SIGNING_KEYS = signingKeysOfTest();

/** Every token is proven by the same evidence: the model asks who may see it. */
const CHECKING = { evidence: async () => [Buffer.from('{}')] } as unknown as CheckingPool;

export async function startReplica(database: Database, time: VirtualTime): Promise<Replica> {
  tellOfStatements(database, time);
  const { db } = database;
  const network = findNetwork('31337') as Network;
  const config = {
    network,
    allowPrivateSinks: true,
    registries: [],
    secretsKey: undefined,
    signingKeys: SIGNING_KEYS,
    subscriptionFailingAfterMinutes: 1,
    rpcUrls: ['http://127.0.0.1:1'] as const,
    followedOf: (() => ({ rpcUrls: ['http://127.0.0.1:1'] })) as unknown as Config['followedOf'],
    tokenRegistryAddress: REGISTRIES[0].registryAddress,
  };
  const lifecycle = createLifecycle();
  const logger = pino({ level: 'silent' });
  const onChanged = async (): Promise<void> => undefined;
  const keys = createAccessKeys(database, time, onChanged);
  const fetching = createEventFetching({ config, database, time, lifecycle, logger });
  const ending = repeat(time, () => keys.endOld(), PAUSE_WITHIN_MS);
  const app = await startHttpApp({
    time,
    adminApiKey: ADMIN_KEY,
    consoleReadKey: READ_KEY,
    keys,
    subscriptions: {
      subscriptionsFor: (holder) => createSubscriptions(config, { database, time, onChanged, holder }),
      deliveries: (wanted) => listDeliveries(db, wanted),
      fetchEvents: fetching.fetch,
      redeliver: (subscription, selection) => redeliverTo(database, { subscription }, selection, time.now()),
    },
    answers: createAnswers({
      config,
      db,
      feedOf: () => undefined,
      targetOf: () => undefined,
      scope: undefined,
      checking: CHECKING,
      time,
    }),
  });
  return {
    url: app.url,
    database,
    keys,
    lifecycle,
    async stop() {
      await Promise.all([ending.stop(), fetching.stop(), app.close()]);
    },
  };
}
