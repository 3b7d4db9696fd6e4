import { setTimeout as sleep } from 'node:timers/promises';
import { hexlify, parseUnits, randomBytes } from 'ethers';
import { Pool } from 'undici';
import type { BareMinter } from './bare-minter';

const LOOK_EVERY_MS = 2;
/** Enough for any base fee that full blocks lead to in a run. */
const FEES = { maxFeePerGas: parseUnits('1000', 'gwei'), maxPriorityFeePerGas: parseUnits('1', 'gwei') };

/** Signs mints beforehand, in the order of their nonces. */
export async function presign({ wallet, registry, chainId }: BareMinter, count: number): Promise<string[]> {
  const owner = wallet.address;
  const mintOf = () =>
    registry.mint.populateTransaction(owner, owner, BigInt(hexlify(randomBytes(32))), '0x');
  const [nonce, gas] = await Promise.all([wallet.getNonce(), wallet.estimateGas(await mintOf())]);
  const common = { chainId, type: 2, gasLimit: (gas * 12n) / 10n, ...FEES };
  const mints = Array.from({ length: count }, async (_, index) =>
    wallet.signTransaction({ ...(await mintOf()), ...common, nonce: nonce + index }),
  );
  return Promise.all(mints);
}

/**
 * Sends a minter's mints as fast as the node takes them, and waits until all are mined.
 *
 * @param atOnce how many may be unanswered at a time. It must be 1 for a node that mines at once: such a node
 *   refuses nonces out of order.
 */
export async function sendMints(
  nodeUrl: string,
  { wallet }: BareMinter,
  mints: readonly string[],
  atOnce: number,
): Promise<void> {
  // Its own connections: the node closes idle ones.
  const node = new Pool(nodeUrl, { connections: atOnce });
  const before = await wallet.getNonce('latest');
  let next = 0;
  const sendOnes = async (): Promise<void> => {
    for (let raw = mints[next++]; raw !== undefined; raw = mints[next++]) {
      await call(node, 'eth_sendRawTransaction', [raw]);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, sendOnes));
  while (await isAwaited()) await sleep(LOOK_EVERY_MS);
  await node.close();

  async function isAwaited(): Promise<boolean> {
    const count = await call(node, 'eth_getTransactionCount', [wallet.address, 'latest']);
    return Number(count) < before + mints.length;
  }
}

async function call(node: Pool, method: string, params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const headers = { 'content-type': 'application/json' };
  const answer = await node.request({ path: '/', method: 'POST', headers, body });
  const { result, error } = (await answer.body.json()) as { result?: unknown; error?: { message: string } };
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}
