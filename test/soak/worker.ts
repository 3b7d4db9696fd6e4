import { runScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace } from '../helpers/mint-model/place';
import { createRequestPlace } from '../helpers/request-model/request-model';
import { nothingIsLeftRunning } from '../helpers/resources';
import { createRetractionPlace } from '../helpers/retraction-model/retraction-model';
import type { Model, SeedRange } from './seed-range';

/** An environment that runs the scenarios of a model one after the other. */
interface Place {
  run(seed: number): Promise<unknown>;
  stop(): Promise<void>;
}

async function createPlace(model: Model): Promise<Place> {
  if (model === 'retractions') return createRetractionPlace();
  if (model === 'requests') return createRequestPlace();
  const place = await createMintPlace();
  return { run: (seed) => runScenario(place, seed), stop: () => place.stop() };
}

async function run({ model, first, count }: SeedRange): Promise<void> {
  const place = await createPlace(model);
  try {
    for (let seed = first; seed < first + count; seed++) process.send?.(await place.run(seed));
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
