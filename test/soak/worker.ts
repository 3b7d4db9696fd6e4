import { stopAll } from '../helpers/resources';
import { createPlace, type SeedRange } from './models';

async function run(range: SeedRange): Promise<void> {
  const { model, engine, first, count, forMs = Infinity } = range;
  const place = await createPlace(model, engine);
  if (place === undefined) throw new Error(`${engine} is not installed`);
  const until = Date.now() + forMs;
  for (let seed = first; seed < first + count && Date.now() < until; seed++)
    process.send?.(await place.run(seed));
}

process.once('message', (range) => {
  run(range as SeedRange)
    .finally(stopAll)
    .then(
      () => process.disconnect(),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
});
process.once('disconnect', () => process.exit());
