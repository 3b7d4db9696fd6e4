import type { Engine } from '../helpers/database/engines';
import { runScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace } from '../helpers/mint-model/place';
import { runNodesScenario } from '../helpers/nodes-model/nodes-model';
import { createRequestPlace } from '../helpers/request-model/request-model';
import { nothingIsLeftRunning } from '../helpers/resources';
import { createRetractionPlace } from '../helpers/retraction-model/retraction-model';
import type { SeedRange } from './seed-range';

/** An environment that runs the scenarios of a model one after the other. */
interface Place {
  run(seed: number): Promise<unknown>;
  stop(): Promise<void>;
}

async function createPlace({ model, engine }: SeedRange): Promise<Place> {
  if (model === 'retractions') return createRetractionPlace();
  if (model === 'requests') return requestPlaceOn(engine);
  const place = await createMintPlace();
  const runOne = model === 'nodes' ? runNodesScenario : runScenario;
  return { run: (seed) => runOne(place, seed), stop: () => place.stop() };
}

/** Fails if the engine is not installed. */
async function requestPlaceOn(engine: Engine): Promise<Place> {
  const place = await createRequestPlace(engine);
  if (place === undefined) throw new Error(`${engine} is not installed`);
  return place;
}

async function run(range: SeedRange): Promise<void> {
  const { first, count, forMs = Infinity } = range;
  const place = await createPlace(range);
  const until = Date.now() + forMs;
  try {
    for (let seed = first; seed < first + count && Date.now() < until; seed++)
      process.send?.(await place.run(seed));
  } finally {
    await place.stop();
  }
  nothingIsLeftRunning();
}

process.once('message', (range) => {
  run(range as SeedRange).then(
    () => process.disconnect(),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once('disconnect', () => process.exit());
