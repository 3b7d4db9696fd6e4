import { stopAll } from '../helpers/resources';
import { createPlace, type SeedRange } from './models';

async function run(range: SeedRange): Promise<void> {
  const { engine, first, count, forMs = Infinity } = range;
  const place = await createPlace(range);
  if (place === undefined) throw new Error(`${engine} is not installed`);
  const until = Date.now() + forMs;
  for (let seed = first; seed < first + count && Date.now() < until; seed++)
    await tell([range, await place.run(seed)]);
  await stopAll();
}

/** Resolves once the message is sent: the end of the process would cut a long one off. */
function tell(message: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, undefined, undefined, (error) => (error ? reject(error) : resolve()));
  });
}

async function runAll(ranges: readonly SeedRange[]): Promise<void> {
  for (const range of ranges) await run(range);
}

process.once('message', (ranges) => {
  runAll(ranges as SeedRange[]).then(
    () => process.disconnect(),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once('disconnect', () => process.exit());
