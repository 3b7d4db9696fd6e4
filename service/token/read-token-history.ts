import { setTimeout as sleep } from 'node:timers/promises';
import { getAddress, isError } from 'ethers';
import { blockAt, headNumberOf, senderOf, type ChainBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import { concurrently } from '../watcher/concurrently';
import type { RegistryOnChain } from '../watcher/registry-contracts';
import { endorsementsOf, type Endorsement } from './endorsement-chain';
import { readTokenLogs } from './read-token-logs';
import { readTokenState, type TokenState } from './read-token-state';

/** An operation, when it happened (seconds since 1970, of its block) and who sent its transaction. */
export interface DatedEndorsement extends Endorsement {
  timestamp: number;
  sender: string;
}

/** A token's state, and all that led to it. */
export interface TokenHistory {
  state: TokenState;
  endorsements: DatedEndorsement[];
  /** False: earlier ones were not asked for. */
  isWhole: boolean;
}

/**
 * `fromBlock`: nothing earlier is read. Undefined: the registry's first block. `bulkClient` reads the logs: one that reports refusals at once, where
 * another waits them out for half a minute each. Undefined: the same client.
 */
export interface HistoryOptions {
  fromBlock?: number;
  bulkClient?: RpcClient;
  onProgress?: (block: number, range: { fromBlock: number; toBlock: number }) => void;
}

/** How often the chain may change while it is read. */
const READINGS = 3;
/** A node that is a block behind the others of its provider has it soon. */
const PAUSE_MS = 1_000;
const CONCURRENT_CALLS = 8;

/**
 * Reads a token's state and its endorsement chain, both up to the same block of the same branch.
 *
 * @throws ChainError BLOCK_CHANGED or TOKEN_HISTORY_INCOMPLETE when that failed again and again; whatever the node answers.
 */
export async function readTokenHistory(
  client: RpcClient,
  registry: RegistryOnChain,
  tokenId: bigint,
  options: HistoryOptions = {},
): Promise<TokenHistory> {
  for (let reading = 1; ; reading++) {
    try {
      return await readOnce(client, registry, tokenId, options);
    } catch (error) {
      if (!mayPass(error) || reading === READINGS) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** A node that does not have the block yet answers to calls with an error of its own; a contract would give a reason. */
function mayPass(error: unknown): boolean {
  if (error instanceof ChainError) return error.retryable;
  return isError(error, 'CALL_EXCEPTION') && error.data === null;
}

async function readOnce(
  client: RpcClient,
  { contracts, genesisBlock }: RegistryOnChain,
  tokenId: bigint,
  { fromBlock = genesisBlock, bulkClient = client, onProgress }: HistoryOptions,
): Promise<TokenHistory> {
  const head = await existingBlock(client, await headNumberOf(client));
  const state = await readTokenState(client, contracts, tokenId, head.number);
  if (state.state === 'not minted') {
    await expectUnchanged(client, head);
    return { state, endorsements: [], isWhole: true };
  }
  const range = { fromBlock: Math.max(fromBlock, genesisBlock), toBlock: head.number };
  const found = await readTokenLogs(bulkClient, contracts, tokenId, {
    ...range,
    onProgress: (block) => onProgress?.(block, range),
  });
  const isFromTheStart = found.isWhole || fromBlock <= genesisBlock;
  await expectUnchanged(client, head);
  const endorsements = endorsementsOf({ logs: found.logs, isWhole: isFromTheStart }, state);
  return { state, endorsements: await date(client, endorsements), isWhole: isFromTheStart };
}

async function date(client: RpcClient, endorsements: readonly Endorsement[]): Promise<DatedEndorsement[]> {
  return concurrently(endorsements, CONCURRENT_CALLS, async (endorsement) => {
    const { blockNumber, blockHash, transactionHash } = endorsement;
    const [block, sender] = await Promise.all([
      existingBlock(client, blockNumber),
      senderOf(client, transactionHash, blockHash),
    ]);
    if (block.hash !== blockHash) throw changed(blockNumber);
    return { ...endorsement, timestamp: block.timestamp, sender: getAddress(sender) };
  });
}

async function expectUnchanged(client: RpcClient, { number, hash }: ChainBlock): Promise<void> {
  const block = await existingBlock(client, number);
  if (block.hash !== hash) throw changed(number);
}

async function existingBlock(client: RpcClient, number: number): Promise<ChainBlock> {
  const block = await blockAt(client, number);
  if (block) return block;
  throw new ChainError('BLOCK_MISSING', `The node does not have block ${number}.`, { retryable: true });
}

function changed(number: number): ChainError {
  const message = `Block ${number} changed while the token was read.`;
  return new ChainError('BLOCK_CHANGED', message, { retryable: true });
}
