import { runScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace } from '../helpers/mint-model/place';
import { nothingIsLeftRunning } from '../helpers/resources';

/** The scenarios that main.ts gives to a process. Each result is sent as a message. */
export interface SeedRange {
  first: number;
  count: number;
}

async function run({ first, count }: SeedRange): Promise<void> {
  const place = await createMintPlace();
  try {
    for (let seed = first; seed < first + count; seed++) process.send?.(await runScenario(place, seed));
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
