import { dataLength, dataSlice, isError } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { isThrottled, nodeErrorOf } from '../chain/refusals';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
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

/** Remedies by the name of the contract's error. */
const REMEDIES: Readonly<Record<string, string>> = {
  RemarkLengthExceeded: 'remarks may have at most 120 bytes in UTF-8.',
  TokenExists: 'A token with this id exists already.',
  EnforcedPause: 'The registry is paused: its admin must unpause it first.',
  AccessControlUnauthorizedAccount:
    'The wallet has no minter role in this registry: its admin must grant it.',
  InvalidRegistry: 'TOKEN_REGISTRY_ADDRESS is not a registry that its title escrow factory can serve.',
};

/** The message of every mint that cannot be simulated, so that one search finds all such failures. */
const FAILED_TO_MINT = 'Failed to mint token';

/**
 * The error of a mint that the registry would refuse. A remark that is too long is the caller's mistake, and
 * has a code of its own.
 *
 * @param reason the name of the contract's error. Undefined if it gave none.
 * @param options.remedy used for a reason that is not listed here.
 */
export function refusedMint(
  reason: string | undefined,
  options: { cause?: unknown; remedy?: string | undefined } = {},
): ChainError {
  const code = reason === 'RemarkLengthExceeded' ? 'REMARK_TOO_LONG' : 'MINT_SIMULATION_FAILED';
  const remedy = REMEDIES[reason ?? ''] ?? options.remedy;
  return new ChainError(code, FAILED_TO_MINT, { ...options, reason, remedy });
}
