import { dataLength, dataSlice, isError } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import { registryInterface } from './abi';

/** The mint of a token (TradeTrustTokenMintable.mint), but for its registry. `remark` is 0x-prefixed hex. */
export interface MintArguments {
  beneficiary: string;
  holder: string;
  /** 64 hexadecimal digits. */
  tokenId: string;
  remark: string;
}

/** Why the simulation fails, by the contract's own error, in words that say what to do. */
const REMEDIES: Record<string, string> = {
  RemarkLengthExceeded: 'remarks may have at most 120 bytes in UTF-8.',
  TokenExists: 'A token with this id exists already.',
  EnforcedPause: 'The registry is paused: its admin must unpause it first.',
  AccessControlUnauthorizedAccount:
    'The wallet has no minter role in this registry: its admin must grant it.',
  InvalidRegistry: 'TOKEN_REGISTRY_ADDRESS is not a registry that its title escrow factory can serve.',
};

/**
 * Makes what tries a mint without sending it, as the wallet.
 *
 * @throws ChainError MINT_SIMULATION_FAILED with the contract's reason.
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

/**
 * The document, POST /create, step 8: the message is "Failed to mint token"; the contract's reason follows as
 * cause and remedy.
 */
export function simulationFailed(cause: unknown): ChainError {
  const revert = revertNameOf(cause);
  const remedy = (revert && REMEDIES[revert]) ?? explain(cause);
  return new ChainError('MINT_SIMULATION_FAILED', `Failed to mint token${revert ? ` (${revert})` : ''}`, {
    cause,
    retryable: !isError(cause, 'CALL_EXCEPTION') && !isError(cause, 'BAD_DATA'),
    ...(remedy !== undefined && { remedy }),
  });
}

/** Of what a contract answers, the first say which error it is. */
const SELECTOR_BYTES = 4;

/** Whether a mint was refused because the registry has the token already; looks into causes. */
export function saysTokenExists(error: unknown): boolean {
  if (revertNameOf(error) === 'TokenExists') return true;
  return error instanceof Error && error.cause !== undefined && saysTokenExists(error.cause);
}

/**
 * The contract's own error. ethers reads it from what a call was answered with, and not from what an estimate
 * was.
 */
function revertNameOf(cause: unknown): string | undefined {
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
