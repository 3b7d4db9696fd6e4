import type { Database } from '../../../service/database/database';
import { newState, openState, removeRows, type Engine, type State } from '../database/engines';
import { addSubscription } from '../database/subscriber';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { ChangingRegistry } from './changing-registry';
import { FetchingClient } from './fetching-client';

// A model test of clients that fetch events. Two registries grow, are reorganised, delivered to
// subscriptions, purged and restored, each by one process at a time: on PostgreSQL by either of two. Clients
// fetch meanwhile from either process, stop, and go on with any earlier cursor. At the end, what holds of
// each token for a client with retractions must be what the chain has, in its order; one without must have
// every event once.

const TOKENS = [0n, 7n, 8n];
const RETRACTING = '0192f3c8-5a00-7000-8000-000000000001';
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
      const ofRegistry = nextRandom();
      const draw = (number: number) => ({
        tokenId: ofRegistry.pick(TOKENS),
        payload: { remark: `0x${number}` },
      });
      return new ChangingRegistry({ identity, random: ofRegistry, run, draw });
    });
    for (const registry of registries) await registry.openIn(one());
    const clients = [true, true, false].map(
      (hasRetractions) => new FetchingClient({ hasRetractions }, nextRandom(), run),
    );
    const late = new FetchingClient({ hasRetractions: true }, nextRandom(), run);
    const rounds = FEWEST_ROUNDS + random.below(MOST_ROUNDS - FEWEST_ROUNDS);
    for (let now = 1; now <= rounds; now++) {
      await Promise.all([
        ...registries.map((registry) => registry.live(now)),
        ...clients.map((client) => client.live(one())),
      ]);
      if (random.chance(0.1)) {
        run.note('restart');
        for (const database of databases) await database.close();
        databases = await open();
        for (const registry of registries) await registry.openIn(one());
      } else if (random.chance(0.2)) await random.pick(registries).openIn(one());
      if (random.chance(0.15)) {
        // They keep no cursor from before it.
        for (const client of clients) await client.catchUp(one());
        if (random.chance(0.5)) await late.catchUp(one());
        for (const registry of registries) await registry.purge(now + 1);
      }
    }
    for (const client of [...clients, late]) await client.catchUp(one());
    const due = registries.flatMap((registry) => registry.events());
    for (const client of clients) client.compareWith(due);
    late.compareWithEndOf(clients[0] as FetchingClient);
  } finally {
    for (const database of databases) await database.close();
  }
}
