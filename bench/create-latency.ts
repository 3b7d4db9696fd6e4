import { hexlify, randomBytes } from 'ethers';
import type { Devnet } from '../devnet/start-devnet';
import { startDevnet } from '../devnet/start-devnet';
import { createBareMinter } from './bare-minter';
import { median } from './median';

const ROUNDS = 40;
/** The first requests are slow: they compile code and process contexts. */
const WARM_UP = 5;

/**
 * Compares the median time of one POST /create with that of one bare mint in the same registry on the same
 * node. The two take turns. The part above 1 is the cost of the document: HTTP, signature, simulation, gas
 * estimate.
 */
async function compare(devnet: Devnet): Promise<void> {
  const { client } = devnet;
  const { registry, wallet } = await createBareMinter(client, devnet.registryAddress);
  const owner = wallet.address;

  const post = async (): Promise<void> => {
    await devnet.issue(undefined, { owner });
  };
  const mint = async (): Promise<void> => {
    const transaction = await registry.mint(owner, owner, hexlify(randomBytes(32)), '0x', {
      gasLimit: 1_000_000,
    });
    await transaction.wait();
  };

  const times = { post: [] as number[], mint: [] as number[] };
  for (let round = 0; round < ROUNDS + WARM_UP; round++) {
    for (const [name, run] of [
      ['post', post],
      ['mint', mint],
    ] as const) {
      const start = performance.now();
      await run();
      if (round >= WARM_UP) times[name].push(performance.now() - start);
    }
  }
  const [postMs, mintMs] = [median(times.post), median(times.mint)];
  console.log(`POST /create, one at a time: median ${postMs.toFixed(1)} ms (${ROUNDS} requests)`);
  console.log(`bare mint on the same node:  median ${mintMs.toFixed(1)} ms`);
  console.log(`ratio: ${(postMs / mintMs).toFixed(2)}`);
}

/** Runs the comparison on its own devnet. */
export async function run(): Promise<void> {
  const devnet = await startDevnet();
  try {
    await compare(devnet);
  } finally {
    await devnet.stop();
  }
}
