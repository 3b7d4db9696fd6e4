import { dataLength, dataSlice, isError } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { isThrottled, nodeErrorOf } from '../chain/node-errors';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import { FAILED_TO_MINT, refusedMint } from './refused-mint';
import { registryInterface } from './registry-contracts';

/** Arguments of TradeTrustTokenMintable.mint. `remark` is 0x-prefixed hex. */
export interface MintArguments {
  beneficiary: string;
  holder: string;
  /** 64 hexadecimal digits. */
  tokenId: string;
  remark: string;
}

/**
 * Returns a function that simulates a mint by the wallet, without sending it.
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

/** The error of a failed simulation, whether the contract or the node refused it. */
export function simulationFailed(cause: unknown): ChainError {
  if (isOutage(cause)) return new ChainError('RPC_UNREACHABLE', FAILED_TO_MINT, { cause, retryable: true });
  return refusedMint(reasonOf(cause), { cause, remedy: explain(cause) });
}

/** ethers calls it a CALL_EXCEPTION, too, when a node is asked too often. */
function isOutage(cause: unknown): boolean {
  const words = nodeErrorOf(cause);
  if (words !== undefined && isThrottled(words)) return true;
  return !isError(cause, 'CALL_EXCEPTION') && !isError(cause, 'BAD_DATA');
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
