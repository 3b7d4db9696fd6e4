import { systemTime } from '../../../service/base/time';
import { findNetwork, type Network } from '../../../service/chain/networks';
import type { Database } from '../../../service/database/database';
import { createSubscriptions, type Subscriptions } from '../../../service/subscriptions/manage-subscriptions';
import { signingKeysOfTest } from '../receiver/webhook-to';
import type { History } from '../scenario';
import type { SeededRandom } from '../seeded-random';
import { randomRule, type Rule, type RuleChange } from './rule';

/** A subscription and its changes so far. */
export interface Changing {
  id: string;
  path: string;
  changes: RuleChange[];
  rule: Rule;
  isPaused: boolean;
  isDeleted: boolean;
  /** It also wants the events that were recorded before, and so its rule is not changed. */
  fromBeginning: boolean;
}

/** The parts that the changes need. `tick` counts beginnings and ends. */
export interface ChangingOptions {
  database: Database;
  history: History;
  sinks: string;
  random: SeededRandom;
  tick(this: void): number;
  onChanged(this: void): void;
}

/** Deliveries of a subscription at once. */
export const MOST_AT_ONCE = 2;
const RETRY = { initialDelayMs: 20, maxDelayMs: 200, giveUpAfterMs: 600_000 };
const CONFIG = { retry: RETRY, maxConcurrentDeliveries: MOST_AT_ONCE };

/** Subscriptions that are added, filtered otherwise, paused, resumed and deleted, as by the API. */
export function createChangingSubscriptions(options: ChangingOptions) {
  const { history, random, tick } = options;
  const subscriptions = managed(options);
  const all: Changing[] = [];

  function bodyOf(path: string, rule: Rule, config: object): object {
    return { ...rule.members, sink: `${options.sinks}${path}`, protocol: 'HTTP', config };
  }

  async function add(): Promise<void> {
    const path = `/${all.length}`;
    const rule = randomRule(random);
    const fromBeginning = random.chance(0.3);
    const config = { ...CONFIG, startFrom: fromBeginning ? 'beginning' : 'now' };
    const from = tick();
    const { id } = await subscriptions.add(bodyOf(path, rule, config));
    const change = { from: fromBeginning ? -2 : from, to: fromBeginning ? -1 : tick(), rule };
    all.push({ id, path, rule, changes: [change], isPaused: false, isDeleted: false, fromBeginning });
    history.count('added');
  }

  async function put(one: Changing, rule: Rule, isPaused: boolean): Promise<void> {
    const config = { ...CONFIG, state: isPaused ? 'paused' : 'active' };
    const from = tick();
    await subscriptions.replace(one.id, bodyOf(one.path, rule, config));
    one.changes.push({ from, to: tick(), rule });
    Object.assign(one, { rule, isPaused });
  }

  async function remove(one: Changing): Promise<void> {
    const from = tick();
    await subscriptions.remove(one.id, true);
    one.changes.push({ from, to: tick(), rule: undefined });
    one.isDeleted = true;
    history.count('deleted');
  }

  return {
    all,
    add,
    /** Changes one, or deletes it and adds another. */
    async changeOne(): Promise<void> {
      const one = random.pick(all.filter(({ isDeleted }) => !isDeleted));
      if (random.chance(0.1)) {
        await remove(one);
        await add();
      } else if (random.chance(0.5)) {
        await put(one, one.rule, !one.isPaused);
        history.count(one.isPaused ? 'paused' : 'resumed');
      } else if (!one.fromBeginning) {
        await put(one, randomRule(random), one.isPaused);
        history.count('filtered');
      }
    },
    async resumeAll(): Promise<void> {
      for (const one of all) if (one.isPaused && !one.isDeleted) await put(one, one.rule, false);
    },
  };
}

function managed({ database, onChanged }: ChangingOptions): Subscriptions {
  return createSubscriptions(
    {
      allowPrivateSinks: true,
      network: findNetwork('31337') as Network,
      registries: [],
      secretsKey: undefined,
      signingKeys: signingKeysOfTest(),
      subscriptionFailingAfterMinutes: 1,
    },
    { database, time: systemTime, onChanged: async () => onChanged() },
  );
}
