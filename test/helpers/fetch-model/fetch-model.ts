import type { Database } from '../../../service/database/database';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import { newState, openState, removeRows, type Engine, type State } from '../database/engines';
import { addSubscription } from '../database/subscriber';
import { ChangingRegistry } from '../changing-registry';
import { TYPES } from '../live-change/rule';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { FetchingClient } from './fetching-client';
import { SubscribedRule } from './subscribed-rule';

// A model test of clients that fetch events. Two registries grow, are reorganised, delivered to
// subscriptions, purged and restored, each by one process at a time: on PostgreSQL by either of two. A
// process is killed at any statement, and the next one goes on from what is stored. Clients fetch meanwhile
// from either process, stop, and go on with any earlier cursor, some by the rules of a subscription, which
// are replaced between two pages. Purges run between the pages, and beside them.
//
// At the end, what holds of each token for a client with retractions must be what the chain has, in its
// order; one without must have every event once. Each page must have just the events between its two cursors
// that its rules select. A cursor may expire only if events after it were purged.

const TOKENS = [0n, 7n, 8n];
const RETRACTING = '0192f3c8-5a00-7000-8000-000000000001';
/** Of them, the first is without retractions. */
const SELECTING = [2, 3, 4].map((number) => `0192f3c8-5a00-7000-8000-00000000000${number}`);
const FEWEST_ROUNDS = 8;
const MOST_ROUNDS = 25;

/** Undefined if the engine is not installed. */
export async function createFetchPlace(engine: Engine): Promise<Place | undefined> {
  const state = await newState(engine);
  if (state === undefined) return undefined;
  stopLater('the state of the model', () => state[Symbol.asyncDispose]());
  return {
    async run(seed) {
      const history = new History(seed);
      const database = await openState(state);
      await removeRows(database, engine);
      await database.close();
      return await history.of(runOnce(history, state, engine === 'SQLite' ? 1 : 2));
    },
  };
}

async function runOnce(run: History, state: State, replicas: number): Promise<void> {
  let drawn = 0;
  const nextRandom = (): SeededRandom => seededRandom(run.seed * 16 + drawn++);
  const random = nextRandom();
  const open = () => Promise.all(Array.from({ length: replicas }, () => openState(state)));
  let databases = await open();
  const one = (): Database => random.pick(databases);
  try {
    await addSubscription(one(), { config: { retractions: true } }, RETRACTING);
    const registries = ['11', '22'].map((byte) => {
      const identity = { chainKey: 'hardhat', chainId: 31337, registryAddress: `0x${byte.repeat(20)}` };
      const own = nextRandom();
      const draw = (number: number): Partial<RegistryEvent> => ({
        type: own.pick(TYPES),
        tokenId: own.pick(TOKENS),
        payload: { remark: `0x${number}` },
      });
      return new ChangingRegistry({ identity, random: own, run, draw, killing: 0.2 });
    });
    for (const registry of registries) await registry.openIn(one(), 0);
    const clients = [true, true, false].map(
      (hasRetractions) => new FetchingClient({ hasRetractions }, nextRandom(), run),
    );
    const late = new FetchingClient({ hasRetractions: true }, nextRandom(), run);
    const selecting: FetchingClient[] = [];
    for (const [index, name] of SELECTING.entries()) {
      const hasRetractions = index > 0;
      const sources = registries.map(({ source }) => source);
      const rule = new SubscribedRule({ name, hasRetractions }, TOKENS, sources, nextRandom());
      await rule.add(one());
      selecting.push(new FetchingClient({ hasRetractions, rule }, nextRandom(), run));
    }
    const rounds = FEWEST_ROUNDS + random.below(MOST_ROUNDS - FEWEST_ROUNDS);
    for (let now = 1; now <= rounds; now++) {
      const isPurged = random.chance(0.2);
      if (isPurged) {
        // Those that must not lose events have all that are purged.
        for (const client of clients) await client.catchUp(one());
        for (const registry of registries) await registry.deliverAll(one(), now);
      }
      await Promise.all([
        ...registries.map((registry) => registry.live(one(), now)),
        ...[...clients, ...selecting].map((client) => client.live(one(), one())),
        ...(isPurged ? registries.map((registry) => registry.purge(one(), now)) : []),
      ]);
      if (random.chance(0.1)) {
        run.note('restart');
        for (const database of databases) await database.close();
        databases = await open();
        for (const registry of registries) await registry.openIn(one(), now);
      } else if (random.chance(0.2)) await random.pick(registries).openIn(one(), now);
      if (random.chance(0.15)) {
        // They keep no cursor from before it.
        for (const client of clients) await client.catchUp(one());
        if (random.chance(0.5)) await late.catchUp(one());
        for (const registry of registries) {
          await registry.deliverAll(one(), now + 1);
          await registry.purge(one(), now + 1);
        }
      }
    }
    for (const registry of registries) await registry.readAll(one(), rounds);
    for (const client of [...clients, ...selecting, late]) await client.catchUp(one());
    const due = registries.flatMap((registry) => registry.events());
    for (const client of clients) client.compareWith(due);
    const [complete, , withoutRetractions] = clients as [FetchingClient, FetchingClient, FetchingClient];
    late.compareWithEndOf(complete);
    for (const [index, client] of selecting.entries())
      client.comparePagesWith(index > 0 ? complete : withoutRetractions);
  } finally {
    for (const database of databases) await database.close();
  }
}
