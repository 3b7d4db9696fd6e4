import { dataLength, dataSlice, isError } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { isThrottled, nodeErrorOf } from '../chain/refusals';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import { registryInterface } from './abi';
import { FAILED_TO_MINT, refusedMint } from './refused-mint';

/** The mint of a token (TradeTrustTokenMintable.mint), but for its registry. `remark` is 0x-prefixed hex. */
export interface MintArguments {
  beneficiary: string;
  holder: string;
  /** 64 hexadecimal digits. */
  tokenId: string;
  remark: string;
}

/**
 * Makes what tries a mint without sending it, as the wallet.
 *
 * @throws ChainError MINT_SIMULATION_FAILED or REMARK_TOO_LONG with the name of the contract's error as its
 *   reason; RPC_UNREACHABLE when the node cannot be asked.
 */
export function createMintSimulation(
  client: RpcClient,
  { registryAddress, walletAddress }: { registryAddress: string; walletAddress: string },
): (mint: MintArguments) => Promise<void> {
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, client);
  return async ({ beneficiary, holder, tokenId, remark }) => {
    try {
      await registry.mint.staticCall(beneficiary, holder, `0x${tokenId}`, remark, { from: walletAddress });
    } catch (cause) {
      throw simulationFailed(cause);
    }
  };
}

/** The error of a mint that cannot even be simulated, whether the contract refuses or the node. */
export function simulationFailed(cause: unknown): ChainError {
  if (isOutage(cause)) return new ChainError('RPC_UNREACHABLE', FAILED_TO_MINT, { cause, retryable: true });
  const remedy = explain(cause);
  return refusedMint(reasonOf(cause), { cause, ...(remedy !== undefined && { remedy }) });
}

/** ethers calls it an exception of the call, too, when a node is asked too often. */
function isOutage(cause: unknown): boolean {
  const words = nodeErrorOf(cause);
  if (words !== undefined && isThrottled(words)) return true;
  return !isError(cause, 'CALL_EXCEPTION') && !isError(cause, 'BAD_DATA');
}

/** Of what a contract answers, the first say which error it is. */
const SELECTOR_BYTES = 4;

/** Whether a mint was refused because the registry has the token already; looks into causes. */
export function saysTokenExists(error: unknown): boolean {
  if (reasonOf(error) === 'TokenExists') return true;
  return error instanceof Error && error.cause !== undefined && saysTokenExists(error.cause);
}

/**
 * The contract's own error. ethers reads it from what a call was answered with, and not from what an estimate
 * was.
 */
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
