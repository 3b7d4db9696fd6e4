import { getAddress } from 'ethers';
import pMap from 'p-map';
import { existingBlock, senderOf } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { readTokenState, type TokenState } from '../registry/read-token-state';
import type { RegistryOnChain } from '../registry/registry-contracts';
import { endorsementsOf, type Endorsement } from './endorsement-chain';
import { readTokenLogs } from './read-token-logs';
import { blockChanged, expectUnchanged, headBlockOf, readAgainWhileItMayPass } from './unchanged-block';

/** An endorsement with the timestamp of its block (seconds since 1970) and the sender of its transaction. */
export interface DatedEndorsement extends Endorsement {
  timestamp: number;
  sender: string;
}

/** A token's state and its endorsements. */
export interface TokenHistory {
  state: TokenState;
  endorsements: DatedEndorsement[];
  /** False if earlier endorsements were not read. */
  isWhole: boolean;
}

/**
 * `fromBlock`: the first block to read; by default the registry's first block. `bulkClient`: the client that
 * reads the logs. It should report refusals at once instead of retrying for half a minute each. By default
 * the same client.
 */
export interface HistoryOptions {
  fromBlock?: number;
  bulkClient?: RpcClient;
  onProgress?: (block: number, range: { fromBlock: number; toBlock: number }) => void;
}

const CONCURRENT_CALLS = 8;

/**
 * Reads a token's state and its endorsement chain, both up to the same block of the same branch.
 *
 * @throws ChainError BLOCK_CHANGED or TOKEN_HISTORY_INCOMPLETE if several readings failed; any error of the
 *   node.
 */
export async function readTokenHistory(
  client: RpcClient,
  registry: RegistryOnChain,
  tokenId: bigint,
  options: HistoryOptions = {},
): Promise<TokenHistory> {
  return readAgainWhileItMayPass(() => readOnce(client, registry, tokenId, options));
}

async function readOnce(
  client: RpcClient,
  { contracts, genesisBlock }: RegistryOnChain,
  tokenId: bigint,
  { fromBlock = genesisBlock, bulkClient = client, onProgress }: HistoryOptions,
): Promise<TokenHistory> {
  const head = await headBlockOf(client);
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
  return pMap(
    endorsements,
    async (endorsement) => {
      const { blockNumber, blockHash, transactionHash } = endorsement;
      const [block, sender] = await Promise.all([
        existingBlock(client, blockNumber),
        senderOf(client, transactionHash, blockHash),
      ]);
      if (block.hash !== blockHash) throw blockChanged(blockNumber);
      return { ...endorsement, timestamp: block.timestamp, sender: getAddress(sender) };
    },
    { concurrency: CONCURRENT_CALLS },
  );
}
