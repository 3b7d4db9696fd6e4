import { toQuantity, zeroPadValue, ZeroAddress } from 'ethers';
import type { FinalBlockReading } from '../chain/finality';
import {
  blockAt,
  blockIfThere,
  headNumberOf,
  parseLogs,
  readBackwards,
  type ChainLog,
} from '../chain/read-chain';
import { callContract, transactionCountOf } from '../chain/read-state';
import { isReverted } from '../chain/node-errors';
import { registryInterface } from '../registry/registry-contracts';
import type { Chain } from '../chain/chain';
import { ChainError } from '../base/errors';
import type { MinedMint } from '../journal/issuance';
import type { Mint, SignedMint } from './mint';

/** The fields of a JSON-RPC receipt that decide a verdict. */
export interface MintReceipt {
  transactionHash: string;
  blockNumber: string;
  blockHash: string;
  status: string;
  gasUsed: string;
  logs: readonly { address: string; topics: readonly string[] }[];
}

/**
 * The result of one mint, from the receipts of its transactions:
 *
 * - `none`: no receipts.
 * - `mined`: the token was made.
 * - `reverted`: a transaction was mined and reverted; `usedGas` is the gas that it used.
 * - `no token`: a transaction succeeded and made no token: there is no registry at the configured address.
 */
export type Verdict =
  | { state: 'none' | 'no token' }
  | { state: 'mined'; mined: MinedMint }
  | { state: 'reverted'; hash: string; usedGas: bigint };

const TRANSFER = registryInterface.getEvent('Transfer').topicHash;
const FROM_NOBODY = zeroPadValue(ZeroAddress, 32);

/**
 * Reads the mints of one registry from the chain, also at a depth that no reorganisation is expected to
 * reach.
 */
export class MintNode {
  constructor(
    private readonly client: Chain,
    private readonly registry: string,
    private readonly readFinalBlock: FinalBlockReading,
  ) {}

  /** The same chain. A reading counts only if all nodes agree that are not away. */
  ofAllNodes(): MintNode {
    return new MintNode(this.client.unanimous, this.registry, this.readFinalBlock);
  }

  head(): Promise<number> {
    return headNumberOf(this.client);
  }

  /** Number of the highest final block; negative if there is none. */
  async finalBlock(): Promise<number> {
    return this.readFinalBlock(await this.head());
  }

  /** The highest final block if this nonce of the wallet is used in it or below. */
  async finalUseOf(wallet: string, nonce: number): Promise<number | undefined> {
    const finalBlock = await this.finalBlock();
    return finalBlock >= 0 && (await this.count(wallet, finalBlock)) > nonce ? finalBlock : undefined;
  }

  /** Undefined when the node does not have the block. */
  async blockHash(number: number): Promise<string | undefined> {
    return (await blockAt(this.client, number))?.hash;
  }

  /** Hash of block 0: a local chain that is started anew has another one. Undefined if the node lacks it. */
  async originHash(): Promise<string | undefined> {
    return (await blockIfThere(this.client, 0))?.hash;
  }

  /**
   * The wallet's transaction count. `latest`: mined ones; `pending`: also those in the pool; a number: mined
   * up to that block.
   */
  count(wallet: string, at: 'latest' | 'pending' | number): Promise<number> {
    return transactionCountOf(this.client, wallet, at);
  }

  /**
   * Judges the given transactions of a mint. Receipts that the node does not have are left out, and those
   * that some nodes give before a transaction is in a block.
   */
  async verdictOn({ issuance }: Mint, transactions: readonly SignedMint[]): Promise<Verdict> {
    const receiptOf = ({ hash }: SignedMint): Promise<unknown> =>
      this.client.send('eth_getTransactionReceipt', [hash]);
    const receipts = (await Promise.all(transactions.map(receiptOf))) as (MintReceipt | null)[];
    const mined = receipts.flatMap((receipt) => (receipt?.blockNumber ? receipt : []));
    return judgeReceipts(mined, this.registry, issuance.tokenId);
  }

  /** The mints of these tokens in a range of blocks, from one log query. */
  async mintedBetween(
    fromBlock: number,
    toBlock: number,
    tokenIds: readonly string[],
  ): Promise<Map<string, MinedMint>> {
    const logs = await this.#mintLogs(fromBlock, toBlock, tokenIds);
    return new Map(logs.map((log) => [String(log.topics[3]).slice(2), minedBy(log)]));
  }

  /**
   * Finds the transaction that made a token. It need not be one of the mint's own.
   *
   * @returns undefined when there is no such token, or no registry.
   * @throws ChainError MINT_NOT_CONFIRMED (retryable) when the token exists but the node does not have its
   *   log, as a node that is behind; also any error of the node.
   */
  async findMint(mint: Mint): Promise<MinedMint | undefined> {
    const { tokenId } = mint.issuance;
    const verdict = await this.verdictOn(mint, mint.transactions);
    if (verdict.state === 'mined') return verdict.mined;
    if (!(await this.existsAt(tokenId, 'latest'))) return undefined;
    const mined = await this.#findLog(tokenId);
    if (mined !== undefined) return mined;
    const message = `Token ${tokenId} exists, but the node does not return the transaction that made it.`;
    throw new ChainError('MINT_NOT_CONFIRMED', message);
  }

  /** Whether the token exists at a block. Rejects when the node does not have that block. */
  async existsAt(tokenId: string, block: number | 'latest'): Promise<boolean> {
    const data = registryInterface.encodeFunctionData('ownerOf', [`0x${tokenId}`]);
    try {
      return (await callContract(this.client, { to: this.registry, data }, block)) !== '0x';
    } catch (cause) {
      if (isReverted(cause)) return false;
      throw cause;
    }
  }

  /** Searches from the newest block back to the registry's first: the mint was sent recently. */
  async #findLog(tokenId: string): Promise<MinedMint | undefined> {
    const [fromBlock, toBlock] = await Promise.all([this.#genesis(), this.head()]);
    let mined: MinedMint | undefined;
    await readBackwards(
      { fromBlock, toBlock },
      (first, last) => this.#mintLogs(first, last, [tokenId]),
      ([log]) => {
        mined = log && minedBy(log);
        return mined !== undefined;
      },
    );
    return mined;
  }

  async #mintLogs(fromBlock: number, toBlock: number, tokenIds: readonly string[]): Promise<ChainLog[]> {
    const topics = [TRANSFER, FROM_NOBODY, null, tokenIds.map((tokenId) => `0x${tokenId}`)];
    const blocks = { fromBlock: toQuantity(fromBlock), toBlock: toQuantity(toBlock) };
    const filter = { address: this.registry.toLowerCase(), topics, ...blocks };
    return parseLogs('eth_getLogs', await this.client.send('eth_getLogs', [filter]));
  }

  /** The registry's first block. */
  async #genesis(): Promise<number> {
    const data = registryInterface.encodeFunctionData('genesis');
    return Number(await callContract(this.client, { to: this.registry, data }));
  }
}

/** Judges the receipts of one token. One transaction that made it is enough, whatever the others did. */
export function judgeReceipts(
  receipts: readonly MintReceipt[],
  registryAddress: string,
  tokenId: string,
): Verdict {
  const [transfer, from, id] = mintTopics(tokenId);
  const isMint = ({ address, topics }: MintReceipt['logs'][number]): boolean =>
    address.toLowerCase() === registryAddress.toLowerCase() &&
    topics[0] === transfer &&
    topics[1] === from &&
    topics[3] === id;
  const made = receipts.find(({ status, logs }) => Number(status) === 1 && logs.some(isMint));
  if (made) return { state: 'mined', mined: minedBy({ ...made, blockNumber: Number(made.blockNumber) }) };
  const reverted = receipts.find(({ status }) => Number(status) !== 1);
  if (reverted)
    return { state: 'reverted', hash: reverted.transactionHash, usedGas: BigInt(reverted.gasUsed) };
  return { state: receipts.length === 0 ? 'none' : 'no token' };
}

/** The topics of the log that a registry emits when it makes a token. */
export function mintTopics(tokenId: string): string[] {
  return [TRANSFER, FROM_NOBODY, `0x${tokenId}`];
}

function minedBy(log: Pick<ChainLog, 'transactionHash' | 'blockNumber' | 'blockHash'>): MinedMint {
  return { txHash: log.transactionHash, block: { number: log.blockNumber, hash: log.blockHash } };
}
