import { dataLength, dataSlice, getAddress, toBeHex } from 'ethers';
import pMap from 'p-map';
import {
  blockChanged,
  existingBlock,
  logsOf,
  readAgainWhileItMayPass,
  readBackwards,
  readUpToHead,
  type ChainLog,
  type LogRange,
} from '../chain/read-chain';
import type { Chain } from '../chain/chain';
import { senderOf } from '../chain/read-receipts';
import { codeAt } from '../chain/read-state';
import {
  titleEscrowAddress,
  type RegistryContracts,
  type RegistryOnChain,
} from '../registry/registry-contracts';
import {
  ESCROW_TOPICS,
  REGISTRY_AND_FACTORY_TOPICS,
  genuineOf,
  type DecodedLog,
} from '../registry/decode-log';
import { readTokenState, type TokenState } from '../registry/read-token-state';
import { endorsementsOf, type Endorsement } from './endorsement-chain';

/** An endorsement with the timestamp of its block (seconds since 1970) and the sender of its transaction. */
export interface DatedEndorsement extends Endorsement {
  timestamp: number;
  sender: string;
}

/** An account that has code now: a contract or, with `delegate`, one that runs its code (EIP-7702). */
export interface AccountWithCode {
  address: string;
  delegate: string | undefined;
}

/** A token's state and its endorsements. */
export interface TokenHistory {
  state: TokenState;
  endorsements: DatedEndorsement[];
  /** Of the accounts that have a role now, and of those for which another account sent a transaction. */
  accountsWithCode: AccountWithCode[];
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
  bulkClient?: Chain;
  onProgress?: (block: number, range: { fromBlock: number; toBlock: number }) => void;
}

const CONCURRENT_CALLS = 8;
/** EIP-7702: the code of an account that delegates is this and the address of the contract. */
const DELEGATION = '0xef0100';
const DELEGATION_BYTES = 23;

/**
 * Reads a token's state and its endorsement chain, both up to the same block of the same branch.
 *
 * @throws ChainError BLOCK_CHANGED or TOKEN_HISTORY_INCOMPLETE if several readings failed; any error of the
 *   node.
 */
export async function readTokenHistory(
  client: Chain,
  registry: RegistryOnChain,
  tokenId: bigint,
  options: HistoryOptions = {},
): Promise<TokenHistory> {
  return readAgainWhileItMayPass(client.time, () => readOnce(client, registry, tokenId, options));
}

async function readOnce(
  client: Chain,
  { contracts, genesisBlock }: RegistryOnChain,
  tokenId: bigint,
  { fromBlock = genesisBlock, bulkClient = client, onProgress }: HistoryOptions,
): Promise<TokenHistory> {
  const { state, logs, isWhole } = await readUpToHead(client, async ({ number }) => {
    const state = await readTokenState(client, contracts, tokenId, number);
    if (state.state === 'not minted') return { state, logs: [], isWhole: true };
    const range = { fromBlock: Math.max(fromBlock, genesisBlock), toBlock: number };
    const found = await readTokenLogs(bulkClient, contracts, tokenId, {
      ...range,
      onProgress: (block) => onProgress?.(block, range),
    });
    return { state, logs: found.logs, isWhole: found.isWhole || fromBlock <= genesisBlock };
  });
  const endorsements = state.state === 'not minted' ? [] : endorsementsOf({ logs, isWhole }, state);
  const dated = await date(client, endorsements);
  return {
    state,
    endorsements: dated,
    accountsWithCode: await accountsWithCode(client, state, dated),
    isWhole,
  };
}

async function accountsWithCode(
  client: Chain,
  state: TokenState,
  endorsements: readonly DatedEndorsement[],
): Promise<AccountWithCode[]> {
  const inRole = state.state === 'not minted' ? [] : [state.beneficiary, state.holder, state.nominee];
  const representedBySender = endorsements.map(({ by, sender }) => (by === sender ? undefined : by));
  const accounts = new Set([...inRole, ...representedBySender].filter((one) => one !== undefined));
  const found = await pMap(
    accounts,
    async (address): Promise<AccountWithCode | undefined> => {
      const code = await codeAt(client, address);
      const isDelegation = dataLength(code) === DELEGATION_BYTES && code.startsWith(DELEGATION);
      const delegate = isDelegation ? getAddress(dataSlice(code, 3)) : undefined;
      return code === '0x' ? undefined : { address, delegate };
    },
    { concurrency: CONCURRENT_CALLS },
  );
  return found.filter((one) => one !== undefined);
}

async function date(client: Chain, endorsements: readonly Endorsement[]): Promise<DatedEndorsement[]> {
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

/** The genuine logs of one token, in chain order. */
export interface TokenLogs {
  logs: DecodedLog[];
  /** Whether the logs begin with the mint, which is a token's first log. */
  isWhole: boolean;
}

/**
 * Reads all logs of one token. Nodes index logs by address and topic, so the whole range is requested at once
 * and split only if that is refused. It is read backwards from the newest block: the search ends at the mint,
 * and most tokens that are looked up are young.
 *
 * @throws any error of the node for a single block, and when it cannot be reached.
 */
export async function readTokenLogs(
  client: Chain,
  contracts: RegistryContracts,
  tokenId: bigint,
  range: LogRange,
): Promise<TokenLogs> {
  const logs: DecodedLog[] = [];
  const isWhole = await readBackwards(
    range,
    (first, last) => logsOfRange(client, contracts, tokenId, first, last),
    (read) => {
      logs.unshift(...genuineOf(read, contracts).filter((log) => log.tokenId === tokenId));
      return logs.some(({ type }) => type === 'minted');
    },
  );
  return { logs, isWhole };
}

/**
 * Selects logs by the title escrow's address, and by the token's id, which is the last topic of the
 * registry's and the factory's events.
 */
async function logsOfRange(
  client: Chain,
  contracts: RegistryContracts,
  tokenId: bigint,
  fromBlock: number,
  toBlock: number,
): Promise<ChainLog[]> {
  const blocks = { fromBlock, toBlock };
  const escrow = titleEscrowAddress(contracts, tokenId);
  const [own, escrows] = await Promise.all([
    logsOf(client, {
      ...blocks,
      address: [contracts.registry, contracts.titleEscrowFactory],
      topics: REGISTRY_AND_FACTORY_TOPICS,
      otherTopics: [null, null, toBeHex(tokenId, 32)],
    }),
    logsOf(client, { ...blocks, address: [escrow], topics: ESCROW_TOPICS }),
  ]);
  return [...own, ...escrows];
}
