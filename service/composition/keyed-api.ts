import { createAccessKeys, type AccessKeys } from '../access/access-keys';
import { createWalletLogin } from '../access/wallet-login';
import { createAnswers, type Answers } from '../answers/answers';
import { createCheckingPool, type CheckingPool } from '../answers/checking-pool';
import { messageOf } from '../base/errors';
import { loggedOnce } from '../base/logger';
import { repeat } from '../base/time';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../base/published-files';
import type { Chain } from '../chain/chain';
import { missingForIssuing } from '../config/config';
import type { FollowedRegistry } from '../config/followed-registries';
import type { Console } from '../http/console-routes';
import { factsOf } from '../console/facts';
import { createOverview, SHARING_OF_OVERVIEW, startSamples } from '../console/overview';
import { createSessions } from '../console/sessions';
import { Registries } from '../followed-registries/registries';
import type { HttpAppOptions } from '../http/app';
import type { SubscriptionRoutes } from '../http/routes/subscriptions';
import { createSnapshots, type SnapshotSources } from '../observability/snapshot';
import { movedSince } from '../outbox/changes';
import { listDeliveries } from '../outbox/deliveries';
import { redeliverTo } from '../outbox/enqueue-stored';
import { createEventFetching } from '../subscriptions/fetch-events';
import { createSubscriptions, sinkRulesOf } from '../subscriptions/manage-subscriptions';
import type { Core } from './core';
import type { Lines } from './watch-conditions';

/** What those may ask and change who have a key. Without a key that may do so, a member is undefined. */
export interface KeyedApi extends Required<
  Pick<HttpAppOptions, 'registries' | 'subscriptions' | 'answers' | 'console' | 'keys' | 'wallets'>
> {
  /** Ends the checks and the waits under way, too, which would keep the server open. */
  stop(): Promise<void>;
}

/** Starts the answers to programs, the management of what is followed and delivered, and the console. */
export function startKeyedApi(
  core: Core,
  lines: Lines,
  sources: SnapshotSources,
  client: Chain,
  sealingKey: Uint8Array,
): KeyedApi {
  const { config, database, time } = core;
  const { issuing, eventDelivery } = lines;
  const { apiKey, adminApiKey, walletLogin, domain } = config;
  const checking =
    apiKey === undefined && adminApiKey === undefined
      ? undefined
      : createCheckingPool({
          time,
          contextUrl: config.billOfLadingContextUrl ?? TRUSTVC_BILL_OF_LADING_CONTEXT_URL,
          rules: sinkRulesOf(config),
        });
  const answers =
    checking &&
    createAnswers({ ...core, ...eventDelivery, db: database.db, scope: issuing?.scope, checking });
  const fetching = createEventFetching(core);
  const onChanged = async (): Promise<void> => {
    await eventDelivery.refresh().catch((error: unknown) => {
      core.logger.warn({ error }, `changed subscriptions cannot be read now: ${messageOf(error)}`);
    });
  };
  const keys = createAccessKeys(database, time, onChanged);
  const ofConsole =
    adminApiKey === undefined || !checking || !answers
      ? undefined
      : startConsole(core, { sources, client, checking, answers, accessKeys: keys, sealingKey });
  // Also without ADMIN_API_KEY, when no key opens anything.
  const endKeys = loggedOnce(core.logger, 'ended keys cannot be looked for now', () => keys.endOld());
  const endingKeys = repeat(time, endKeys, END_KEYS_EVERY_MS);
  const chainIds = (): number[] =>
    eventDelivery.feeds().flatMap(({ running, chainId }) => (running ? [chainId] : []));
  const followedOn = (chainId: number): FollowedRegistry | undefined =>
    eventDelivery.feeds().find((one) => one.running && one.chainId === chainId)?.running?.followed;
  return {
    keys: adminApiKey === undefined ? undefined : keys,
    wallets:
      walletLogin && domain !== undefined
        ? createWalletLogin({ domain, sealingKey, keys, time, chainIds, followedOn })
        : undefined,
    registries: new Registries({
      database,
      settings: config,
      time,
      statusOf: (name) => eventDelivery.feedOf(name)?.status,
      onChange: eventDelivery.refresh,
    }),
    subscriptions: adminApiKey === undefined ? undefined : subscriptionsOf(core, onChanged, fetching.fetch),
    answers,
    console: ofConsole,
    async stop() {
      await Promise.all([checking?.stop(), fetching.stop(), ofConsole?.stop(), endingKeys.stop()]);
    },
  };
}

/** How soon subscriptions pause after the last key of their owner has ended. */
const END_KEYS_EVERY_MS = 5_000;

function subscriptionsOf(
  { config, database, time, lookup }: Core,
  onChanged: () => Promise<void>,
  fetchEvents: SubscriptionRoutes['fetchEvents'],
): SubscriptionRoutes {
  const { db } = database;
  return {
    subscriptionsFor: (holder) => createSubscriptions(config, { database, time, lookup, onChanged, holder }),
    deliveries: (wanted) => listDeliveries(db, wanted),
    fetchEvents,
    async redeliver(name, selection) {
      const redelivered = await redeliverTo(database, { subscription: name }, selection, time.now());
      await onChanged();
      return redelivered;
    },
  };
}

function startConsole(
  { config, database, time, lifecycle }: Core,
  parts: {
    sources: SnapshotSources;
    client: Chain;
    checking: CheckingPool;
    answers: Answers;
    accessKeys: AccessKeys;
    sealingKey: Uint8Array;
  },
): Console & { stop(): Promise<void> } {
  const { sources, client, checking, answers, accessKeys, sealingKey } = parts;
  const { network, adminApiKey: operator, consoleReadKey: reader } = config;
  const samples = startSamples(time, sources.feeds);
  const missing = missingForIssuing(config);
  let attempts = 0;
  lifecycle.on('attempted', (_, outcome) => {
    attempts++;
    if (outcome === 'delivered') samples.delivered();
  });
  return {
    validate: checking.validate,
    progress: answers.progress,
    sessions: createSessions(
      { operator, reader },
      [config.domain, network.chainId, config.tokenRegistryAddress],
      { clock: time, sealingKey, accessKeys },
    ),
    overview: createOverview({
      time,
      currency: network.currency,
      missing,
      takeSnapshot: createSnapshots(sources, { ...SHARING_OF_OVERVIEW, time }),
      moved: async () => `${attempts} ${await movedSince(database.db)}`,
      plots: samples.plots,
    }),
    facts: () => factsOf(config, missing.length === 0, client),
    stop: samples.stop,
  };
}
