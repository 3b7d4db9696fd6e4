import { Wallet, isError, type TransactionRequest } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { ChainError, messageOf } from '../errors';
import { awaitReceipt } from './await-receipt';
import type { TransactionFees } from './fees';
import { createNonceLane } from './nonce-lane';
import type { RpcClient } from './rpc-client';

/** The four arguments of the registry's `mint` (TradeTrustTokenMintable.mint). `remark` is 0x-prefixed hex. */
export interface MintArguments {
  beneficiary: string;
  holder: string;
  tokenId: bigint;
  remark: string;
}

/** Mints tokens in one registry with one wallet. */
export interface TokenMinter {
  /** Simulates, sends and waits until mined. Resolves to the transaction's hash. */
  mint(token: MintArguments): Promise<string>;
}

/** A transaction that is not mined by then is most likely lost, and so is the patience of whoever waits for the answer. */
const LONGEST_WAIT_MS = 10 * 60_000;

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
 * Connects a wallet to a registry.
 *
 * @param readFees fees to attach.
 */
export function createTokenMinter(options: {
  client: RpcClient;
  privateKey: string;
  registryAddress: string;
  readFees: () => Promise<TransactionFees>;
  /** Longest wait for a transaction to be mined, in milliseconds. */
  waitMs?: number;
}): TokenMinter {
  const { client, registryAddress, readFees, waitMs = LONGEST_WAIT_MS } = options;
  const wallet = new Wallet(options.privateKey, client);
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, wallet);
  const lane = createNonceLane(wallet, client);

  async function simulate({ beneficiary, holder, tokenId, remark }: MintArguments): Promise<void> {
    try {
      await registry.mint.staticCall(beneficiary, holder, tokenId, remark);
    } catch (cause) {
      throw simulationFailed(cause);
    }
  }

  async function prepare({
    beneficiary,
    holder,
    tokenId,
    remark,
  }: MintArguments): Promise<TransactionRequest> {
    const [call, gasLimit, fees, { chainId }] = await Promise.all([
      registry.mint.populateTransaction(beneficiary, holder, tokenId, remark),
      registry.mint.estimateGas(beneficiary, holder, tokenId, remark),
      readFees(),
      client.getNetwork(),
    ]);
    return { ...call, chainId, gasLimit, ...fees };
  }

  return {
    async mint(token) {
      await simulate(token);
      const transaction = await prepare(token).catch((cause: unknown) => {
        const message = `Nothing was sent, the mint could not be prepared: ${messageOf(cause)}`;
        throw new ChainError('MINT_NOT_SENT', message, { cause, retryable: true });
      });
      const hash = await lane.submit(transaction);
      await awaitReceipt(client, hash, waitMs);
      return hash;
    },
  };
}

/** The document, POST /create, step 8: the message is "Failed to mint token"; the contract's reason follows as cause and remedy. */
export function simulationFailed(cause: unknown): ChainError {
  const revert = isError(cause, 'CALL_EXCEPTION') ? cause.revert?.name : undefined;
  const remedy = (revert && REMEDIES[revert]) ?? explain(cause);
  return new ChainError('MINT_SIMULATION_FAILED', `Failed to mint token${revert ? ` (${revert})` : ''}`, {
    cause,
    retryable: !isError(cause, 'CALL_EXCEPTION') && !isError(cause, 'BAD_DATA'),
    ...(remedy !== undefined && { remedy }),
  });
}

function explain(cause: unknown): string | undefined {
  if (isError(cause, 'BAD_DATA')) return 'There is no registry at TOKEN_REGISTRY_ADDRESS on this chain.';
  if (!isError(cause, 'CALL_EXCEPTION')) return undefined;
  return 'The contract gave no reason: check that TOKEN_REGISTRY_ADDRESS is a v5 token registry.';
}
