import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { ENGINES, newState, openState } from '../helpers/database/engines';
import { runLiveChange } from '../helpers/live-change/live-change';
import { everythingIsAsDescribed } from '../helpers/violations';

/**
 * 100 subscriptions of 1,000 tokens, changed 500 times while up to five registries record events, on each
 * engine. All registries together cause at most 1,000 deliveries a second, so that deliveries keep up.
 */
const SIZE = { subscriptions: 100, tokens: 1_000, changes: 500, eventsPerBlock: 2, blockEveryMs: 1_000 };

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { seed: { type: 'string' } } });
  const seed = values.seed === undefined ? randomInt(1_000_000) : Number(values.seed);
  for (const engine of ENGINES) {
    await using state = await newState(engine);
    if (state === undefined) continue;
    await using database = await openState(state);
    const startedAt = Date.now();
    const { counts, ...violations } = await runLiveChange(database, { seed, ...SIZE });
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    console.log(`${engine}, seed ${seed}, ${seconds} s:`, violations, counts);
    everythingIsAsDescribed();
    if (Object.values(violations).some((times) => times > 0)) process.exitCode = 1;
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
