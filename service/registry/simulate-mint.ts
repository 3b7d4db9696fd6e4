import { randomBytes } from 'node:crypto';
import { dataLength, dataSlice, isError, makeError } from 'ethers';
import { isThrottled } from '../chain/node-errors';
import type { Chain } from '../chain/chain';
import { codeAt, estimateGas } from '../chain/read-state';
import { ChainError } from '../base/errors';
import { FAILED_TO_MINT, refusedMint } from './refused-mint';
import { registryInterface } from './registry-contracts';

/** Arguments of TradeTrustTokenMintable.mint. `remark` is 0x-prefixed hex. */
export interface MintArguments {
  /** The beneficiary. */
  owner: string;
  holder: string;
  /** 64 hexadecimal digits. */
  tokenId: string;
  remark: string;
}

const SELECTOR = registryInterface.getFunction('mint').selector;

/**
 * The data of a call of `mint`. Ethers encodes the same in a hundred times the processor time, because it
 * checks every argument.
 */
export function mintData({ owner, holder, tokenId, remark }: MintArguments): string {
  const bytes = remark.slice(2);
  // The remark begins after four words, with its length.
  const words = [owner.slice(2), holder.slice(2), tokenId, '80', (bytes.length / 2).toString(16)];
  const padded = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, '0');
  return `${SELECTOR}${words.map((word) => word.padStart(64, '0')).join('')}${padded}`.toLowerCase();
}

/** A mint to ask about, of a token that does not exist. */
export function trialMint(owner: string): MintArguments {
  return { owner, holder: owner, tokenId: randomBytes(32).toString('hex'), remark: '0x' };
}

/** The registry of mints, and the wallet that sends them. */
interface Minter {
  registryAddress: string;
  walletAddress: string;
}

/**
 * Percent of the estimate. Ids and addresses with more zero bytes cost up to 864 gas less than others, a
 * fiftieth of this margin.
 */
const MARGIN = 115n;

/**
 * The gas limit of a mint without a remark before a node has estimated it: the gas that docs/performance.md
 * documents, with the margin. A fork of the chain may change it.
 */
export const DOCUMENTED_GAS_LIMIT = (297_000n * MARGIN) / 100n;

/**
 * Asks the node for the gas limit of a mint.
 *
 * @throws ChainError REGISTRY_MISSING; any error of the node's estimate, as when the mint would revert or the
 *   wallet cannot pay.
 */
export async function estimateMint(
  client: Chain,
  { registryAddress: to, walletAddress: from }: Minter,
  mint: MintArguments,
): Promise<bigint> {
  // Without a contract at the address, an estimate succeeds and the transaction mints nothing.
  if ((await codeAt(client, to)) === '0x') throw registryMissing(to);
  return ((await estimateGas(client, { from, to, data: mintData(mint) })) * MARGIN) / 100n;
}

function registryMissing(address: string): ChainError {
  const remedy = 'Deploy the registry, or correct TOKEN_REGISTRY_ADDRESS; then send the request again.';
  const problem = `There is no contract at TOKEN_REGISTRY_ADDRESS ${address}: the chain has changed.`;
  return new ChainError('REGISTRY_MISSING', `${problem} ${remedy}`, { remedy });
}

/**
 * Returns a function that simulates a mint by the wallet, without sending it.
 *
 * @throws ChainError MINT_SIMULATION_FAILED or REMARK_TOO_LONG with the name of the contract's error as its
 *   reason; RPC_UNREACHABLE when the node cannot be asked.
 */
export function createMintSimulation(
  client: Chain,
  { registryAddress, walletAddress }: Minter,
): (mint: MintArguments) => Promise<void> {
  return async (mint) => {
    const call = { from: walletAddress, to: registryAddress, data: mintData(mint) };
    try {
      const value: unknown = await client.send('eth_call', [call, 'latest']);
      if (!dataLength(String(value))) throw makeError('no registry', 'BAD_DATA', { value: '0x' });
    } catch (cause) {
      throw simulationFailed(cause);
    }
  };
}

/** The error of a failed simulation, whether the contract or the node refused it. */
export function simulationFailed(cause: unknown): ChainError {
  if (isOutage(cause)) return new ChainError('RPC_UNREACHABLE', FAILED_TO_MINT, { cause });
  return refusedMint(reasonOf(cause), { cause, remedy: explain(cause) });
}

/** ethers calls it a CALL_EXCEPTION, too, when a node is asked too often. */
function isOutage(cause: unknown): boolean {
  return isThrottled(cause) || (!isError(cause, 'CALL_EXCEPTION') && !isError(cause, 'BAD_DATA'));
}

/** The first bytes of a contract's revert data identify the error. */
const SELECTOR_BYTES = 4;

/** Whether a mint was refused because the token exists already. Causes are searched as well. */
export function saysTokenExists(error: unknown): boolean {
  if (reasonOf(error) === 'TokenExists') return true;
  return error instanceof Error && error.cause !== undefined && saysTokenExists(error.cause);
}

/** The name of the contract's error. ethers decodes it for calls but not for gas estimates. */
function reasonOf(cause: unknown): string | undefined {
  if (!isError(cause, 'CALL_EXCEPTION')) return undefined;
  if (cause.revert) return cause.revert.name;
  const { data } = cause;
  return data && dataLength(data) >= SELECTOR_BYTES
    ? registryInterface.getError(dataSlice(data, 0, SELECTOR_BYTES))?.name
    : undefined;
}

function explain(cause: unknown): string | undefined {
  if (isError(cause, 'BAD_DATA')) return 'There is no registry at TOKEN_REGISTRY_ADDRESS on this chain.';
  if (!isError(cause, 'CALL_EXCEPTION')) return undefined;
  return 'The contract gave no reason: check that TOKEN_REGISTRY_ADDRESS is a v5 token registry.';
}
