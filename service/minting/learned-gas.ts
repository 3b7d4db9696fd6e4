import type { TradeTrustTokenStandard } from '../../typechain-types';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import type { Issuance } from '../journal/issuance';

/** How much gas mints may use. */
export interface LearnedGas {
  /**
   * The gas limit of a mint.
   *
   * @throws ChainError REGISTRY_MISSING; what the node answers to an estimate: the mint would revert, the wallet cannot pay.
   */
  limitFor(issuance: Issuance): Promise<bigint>;
  /** What was learned is no longer right: the registry is another, or a mint ran out of gas. */
  forget(): void;
}

const KEEP_MS = 5 * 60_000;
/** In hundredths of the estimate. Ids and addresses with more zero bytes cost up to 864 less than others: a fiftieth of this margin. */
const MARGIN = 115n;

/**
 * A mint's gas depends on the length of its remark alone, but for what the zero bytes of its ids and addresses save: 297,000 without one, 317,400 for 1
 * byte, and about 22,500 more for each further 32, which are stored. So one estimate serves all mints with a remark of that length for a while.
 */
export function createLearnedGas(client: RpcClient, registry: TradeTrustTokenStandard): LearnedGas {
  const limits = new Map<number, { limit: Promise<bigint>; at: number }>();

  async function estimate(issuance: Issuance): Promise<bigint> {
    const { beneficiary, holder, tokenId, remark } = issuance;
    const address = await registry.getAddress();
    // Where nothing is, everything succeeds, and nothing is minted.
    if ((await client.getCode(address)) === '0x') throw registryMissing(address);
    return ((await registry.mint.estimateGas(beneficiary, holder, `0x${tokenId}`, remark)) * MARGIN) / 100n;
  }

  return {
    async limitFor(issuance) {
      const { length } = issuance.remark;
      const learned = limits.get(length);
      if (learned !== undefined && performance.now() - learned.at < KEEP_MS) {
        // Others may fail to learn it for a reason of their own.
        return learned.limit.catch(() => estimate(issuance));
      }
      const learning = { limit: estimate(issuance), at: performance.now() };
      limits.set(length, learning);
      learning.limit.catch(() => {
        if (limits.get(length) === learning) limits.delete(length);
      });
      return learning.limit;
    },
    forget() {
      limits.clear();
    },
  };
}

function registryMissing(address: string): ChainError {
  const remedy = 'Deploy the registry, or correct TOKEN_REGISTRY_ADDRESS; then send the request again.';
  const message = `There is no contract at TOKEN_REGISTRY_ADDRESS ${address}: the chain is another than before. ${remedy}`;
  return new ChainError('REGISTRY_MISSING', message, { retryable: true, remedy });
}
