import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JsonRpcProvider, Wallet, hexlify, randomBytes } from 'ethers';
import { BILL_OF_LADING } from '../deploy/devnet/bill-of-lading';
import { startStack, type Cleanup, type Stack } from '../deploy/devnet/stack';
import { TradeTrustTokenStandard__factory } from '../typechain-types';
import { median } from './median';

const ROUNDS = 40;
/** The first requests pay for compiling code and processing contexts. */
const WARM_UP = 5;
/** A funded account of every Hardhat node that nobody else here uses, made a minter for the comparison. */
const BARE_MINTER_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';

/**
 * Median time of one POST /create, over that of one bare mint of the same registry on the same node, taken in turns. What is
 * above 1 is what the document costs: HTTP, signature, simulation, gas estimate.
 */
async function compare(stack: Stack): Promise<void> {
  const client = new JsonRpcProvider(stack.nodeUrl, 31337, { staticNetwork: true, cacheTimeout: -1 });
  const minter = new Wallet(BARE_MINTER_KEY, client);
  const admin = TradeTrustTokenStandard__factory.connect(stack.registryAddress, await client.getSigner(0));
  await (await admin.grantRole(await admin.MINTER_ROLE(), minter.address)).wait();
  const registry = TradeTrustTokenStandard__factory.connect(stack.registryAddress, minter);
  const owner = minter.address;

  const post = async (): Promise<void> => {
    const body = JSON.stringify({ credentialSubject: BILL_OF_LADING, owner, holder: owner });
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(`${stack.serviceUrl}/create/BILL_OF_LADING`, {
      method: 'POST',
      headers,
      body,
    });
    if (response.status !== 200) throw new Error(`POST answered ${response.status}`);
    await response.arrayBuffer();
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
  client.destroy();
  const [postMs, mintMs] = [median(times.post), median(times.mint)];
  console.log(`POST /create, one at a time: median ${postMs.toFixed(1)} ms (${ROUNDS} requests)`);
  console.log(`bare mint on the same node:  median ${mintMs.toFixed(1)} ms`);
  console.log(`ratio: ${(postMs / mintMs).toFixed(2)}`);
}

/** Runs it on a stack of its own. */
export async function run(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tds-bench-'));
  const cleanup: Cleanup = [];
  try {
    await compare(await startStack(folder, (line) => console.log(line), cleanup));
  } finally {
    await Promise.all(cleanup.map((stop) => stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}
