import { setTimeout as sleep } from 'node:timers/promises';
import { hexlify, parseUnits, randomBytes, Wallet } from 'ethers';
import { Pool } from 'undici';
import { TradeTrustTokenStandard__factory } from '../typechain-types';
import type { LocalSetup } from '../test/helpers/chain/local-setup';
import { rateOf } from './measure';

/** A funded account of every Hardhat node that nothing else here uses: its nonces are not the service's. */
const KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';
const LOOK_EVERY_MS = 2;
/** Enough for any base fee that full blocks lead to in a run. */
const FEES = { maxFeePerGas: parseUnits('1000', 'gwei'), maxPriorityFeePerGas: parseUnits('1', 'gwei') };

/** The node's estimate of the gas of a mint. */
export async function gasOfMint({ client, registryAddress }: LocalSetup): Promise<bigint> {
  const admin = await client.getSigner(0);
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, admin);
  return registry.mint.estimateGas(admin.address, admin.address, hexlify(randomBytes(32)), '0x');
}

/** Signs mints beforehand with an account that it makes a minter: the bare loop of issuing. */
export async function presign(local: LocalSetup, count: number): Promise<string[]> {
  const { client, registryAddress } = local;
  const wallet = new Wallet(KEY, client);
  const { address } = wallet;
  const admin = TradeTrustTokenStandard__factory.connect(registryAddress, await client.getSigner(0));
  await (await admin.grantRole(await admin.MINTER_ROLE(), address)).wait();
  const mintOf = () => admin.mint.populateTransaction(address, address, hexlify(randomBytes(32)), '0x');
  const { chainId } = await client.getNetwork();
  const [nonce, gas] = await Promise.all([wallet.getNonce(), gasOfMint(local)]);
  const common = { chainId, type: 2, gasLimit: (gas * 12n) / 10n, ...FEES };
  return Promise.all(
    Array.from({ length: count }, async (_, index) =>
      wallet.signTransaction({ ...(await mintOf()), from: address, ...common, nonce: nonce + index }),
    ),
  );
}

/**
 * Sends signed mints as fast as the node takes them, waits until all are mined, and returns the rate.
 *
 * @param atOnce how many may be unanswered at a time. It must be 1 for a node that mines at once: such a node
 *   refuses nonces out of order.
 */
export async function sendMints({ node }: LocalSetup, mints: string[], atOnce: number): Promise<number> {
  // Its own connections: the node closes idle ones.
  const pool = new Pool(node.url, { connections: atOnce });
  const call = async (method: string, params: unknown[]): Promise<unknown> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = { 'content-type': 'application/json' };
    const answer = await pool.request({ path: '/', method: 'POST', headers, body });
    const { result, error } = (await answer.body.json()) as { result?: unknown; error?: { message: string } };
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  const mined = async (): Promise<number> =>
    Number(await call('eth_getTransactionCount', [new Wallet(KEY).address, 'latest']));
  const target = (await mined()) + mints.length;
  const start = performance.now();
  await rateOf(mints.length, atOnce, (index) => call('eth_sendRawTransaction', [mints[index]]));
  while ((await mined()) < target) await sleep(LOOK_EVERY_MS);
  const rate = (mints.length / (performance.now() - start)) * 1_000;
  await pool.close();
  return rate;
}
