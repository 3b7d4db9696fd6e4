import { setTimeout as sleep } from 'node:timers/promises';
import type { Block } from 'ethers';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import type { RegistryEvent } from '../outbox/registry-event';
import type { RegistryContracts } from './genuine-emitter';
import { readRange } from './read-range';

/** How far a feed has been read. */
export interface Cursor {
  /** The first block that has not been read. */
  nextBlock: number;
  /** The hash of the block before it; undefined before the first range. */
  lastBlockHash: string | undefined;
}

/** Blocks read together: all genuine events in them, and the cursor after them. */
export interface BlockRange {
  fromBlock: number;
  toBlock: number;
  events: RegistryEvent[];
  cursor: Cursor;
}

/** What the watcher needs. */
export interface WatchOptions {
  client: RpcClient;
  contracts: RegistryContracts;
  cursor: Cursor;
  /** Hash of block 0 when the feed began: tells a chain that was started anew from a node that lags behind. */
  genesisHash: string;
  confirmations: number;
  pollIntervalMs: number;
  /** Called when the chain was asked and there was nothing new. */
  onPolled(): void;
  signal: AbortSignal;
}

const MOST_BLOCKS = 2_000;

/**
 * The blocks from the cursor on, range after range, for ever; each range is yielded once it has its confirmations. Ends when the
 * signal aborts.
 *
 * @throws ChainError CHAIN_REORGANISED (not retryable) when the chain no longer has what was read before; CHAIN_REPLACED when it
 *   is another chain; whatever the node answers otherwise: start again from the last cursor that was stored.
 */
export async function* watch(options: WatchOptions): AsyncGenerator<BlockRange, void, undefined> {
  const { client, confirmations, signal } = options;
  let cursor = options.cursor;
  while (!signal.aborted) {
    const head = await client.getBlockNumber();
    const last = Math.min(head - confirmations, cursor.nextBlock + MOST_BLOCKS - 1);
    if (last < cursor.nextBlock) {
      await expectUnchanged(options, cursor);
      options.onPolled();
      await sleep(options.pollIntervalMs, undefined, { signal }).catch(() => undefined);
      continue;
    }
    const range = await readNext(options, cursor, last);
    cursor = range.cursor;
    yield range;
  }
}

async function readNext(options: WatchOptions, cursor: Cursor, toBlock: number): Promise<BlockRange> {
  const { client, contracts } = options;
  const fromBlock = cursor.nextBlock;
  await expectContinuation(options, cursor);
  const last = await blockOf(client, toBlock);
  const events = await readRange(client, contracts, fromBlock, last);
  return {
    fromBlock,
    toBlock,
    events,
    cursor: { nextBlock: toBlock + 1, lastBlockHash: last.hash ?? undefined },
  };
}

/** The first unread block must be a child of the last one read. */
async function expectContinuation(options: WatchOptions, cursor: Cursor): Promise<void> {
  if (cursor.lastBlockHash === undefined) return;
  const first = await blockOf(options.client, cursor.nextBlock);
  if (first.parentHash !== cursor.lastBlockHash) throw await replaced(options, cursor);
}

/** While nothing is new, the last block read must stay what it was; a node that lags may not have it at all. */
async function expectUnchanged(options: WatchOptions, cursor: Cursor): Promise<void> {
  if (cursor.lastBlockHash === undefined) return;
  const last = await options.client.getBlock(cursor.nextBlock - 1);
  const isGone = last === null ? !(await isSameChain(options)) : last.hash !== cursor.lastBlockHash;
  if (isGone) throw await replaced(options, cursor);
}

async function replaced(options: WatchOptions, cursor: Cursor): Promise<ChainError> {
  if (!(await isSameChain(options))) {
    const message =
      'The chain was started anew: its block 0 is not the one this feed began with. A new feed begins.';
    return new ChainError('CHAIN_REPLACED', message, { retryable: true });
  }
  const message =
    `Block ${cursor.nextBlock - 1} is not the one that was read before: the chain was reorganised below the ` +
    'confirmations that the feed waits for. Nothing is delivered from the new branch until somebody has looked.';
  const remedy =
    'Compare what was delivered with the chain; then start with a new DATA_DIR and more CONFIRMATIONS.';
  return new ChainError('CHAIN_REORGANISED', message, { remedy });
}

async function isSameChain({ client, genesisHash }: WatchOptions): Promise<boolean> {
  const genesis = await client.getBlock(0);
  return genesis === null || genesis.hash === genesisHash;
}

/** A block that the node has just told of but does not have (a provider behind a load balancer) is worth asking for again. */
export async function blockOf(client: RpcClient, number: number): Promise<Block> {
  const block = await client.getBlock(number);
  if (block !== null) return block;
  throw new ChainError('BLOCK_MISSING', `The node does not have block ${number} yet.`, { retryable: true });
}
