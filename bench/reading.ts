import { toBeHex, toQuantity, zeroPadValue } from 'ethers';
import { systemTime } from '../service/base/time';
import { chainOfOne, type Chain } from '../service/chain/chain';
import { nothingLearned, type Node } from '../service/chain/node';
import { RangeTooWideError } from '../service/chain/node-errors';
import { BlockSpan, existingBlock } from '../service/chain/read-chain';
import { factoryInterface, titleEscrowAddress } from '../service/registry/registry-contracts';
import { KnownEscrows } from '../service/watcher/known-escrows';
import { readRange } from '../service/watcher/read-range';
import type { Size } from './measure';

const CONTRACTS = {
  registry: `0x${'11'.repeat(20)}`,
  titleEscrowFactory: `0x${'22'.repeat(20)}`,
  titleEscrowImplementation: `0x${'33'.repeat(20)}`,
};
/** The registry's first block, in which all tokens were minted, and the newest block. */
const [GENESIS, HEAD] = [1, 1_000_000];
const CAUGHT_UP = 10_000;
const AT_THE_HEAD = 200;
const FINALITY_DEPTH = 256;

interface LogFilter {
  fromBlock?: string;
  toBlock?: string;
  address?: string[];
}

/** Whether a node answers a query for logs of so many blocks. */
type Allows = (filter: LogFilter, blocks: number) => boolean;

/** Nodes by what they allow. */
const NODES: Readonly<Record<string, Allows>> = {
  'allows everything': () => true,
  'ten blocks without an address, 10,000 with': ({ address }, blocks) => blocks <= (address ? 10_000 : 10),
  'only with an address, 10,000 blocks': ({ address }, blocks) => address !== undefined && blocks <= 10_000,
  'no logs': () => false,
};

/**
 * Counts the calls of each way to read a registry: of the first block after a start, for each 1,000 blocks of
 * a catch-up, and for a block at the head. The chain is in memory; its blocks have transactions of others,
 * and Bloom filters of which a fifth is set. The counts are the same in each run.
 */
export async function reading(size: Size): Promise<void> {
  console.log(`\ncalls of a node: at the start; for 1,000 blocks of a catch-up; for a block at the head`);
  for (const tokens of [10, 1_000, 100_000]) {
    console.log(`  ${tokens.toLocaleString('en')} tokens`);
    for (const [name, allows] of Object.entries(NODES)) {
      const counts = await countCalls(size.of(tokens), allows);
      console.log(`    ${name.padEnd(44)} ${counts.join('; ')}`);
    }
  }
}

async function countCalls(tokens: number, allows: Allows): Promise<string[]> {
  const { client, calls } = createNode(tokens, allows);
  const escrows = new KnownEscrows({ contracts: CONTRACTS, genesisBlock: GENESIS }, FINALITY_DEPTH);
  const span = new BlockSpan(2_000);
  let next = HEAD - 100_000;
  const readTo = async (end: number): Promise<number> => {
    const [before, first] = [calls(), next];
    while (next <= end) {
      const last = Math.min(end, next + span.blocks() - 1);
      const blocks = [await existingBlock(client, next), await existingBlock(client, last)] as const;
      try {
        await readRange({ client, escrows }, ...blocks, HEAD - last);
        span.grow();
        next = last + 1;
      } catch (error) {
        if (!(error instanceof RangeTooWideError)) throw error;
        span.shrink();
      }
    }
    return (calls() - before) / (next - first);
  };
  const start = (await readTo(next)) - 2;
  await readTo(next + CAUGHT_UP);
  const catchUp = (await readTo(next + CAUGHT_UP)) * 1_000;
  next = HEAD - AT_THE_HEAD;
  let atTheHead = 0;
  while (next <= HEAD) atTheHead += (await readTo(next)) - 1;
  return [start, catchUp, atTheHead / AT_THE_HEAD].map((count) =>
    count < 10 ? count.toFixed(1) : count.toFixed(0),
  );
}

/** A node of a chain in memory. */
function createNode(tokens: number, allows: Allows): { client: Chain; calls: () => number } {
  const created = factoryInterface.getEvent('TitleEscrowCreated').topicHash;
  const mints = Array.from({ length: tokens }, (_, index) => ({
    address: CONTRACTS.titleEscrowFactory,
    topics: [
      created,
      zeroPadValue(titleEscrowAddress(CONTRACTS, BigInt(index)), 32),
      zeroPadValue(CONTRACTS.registry, 32),
      toBeHex(index, 32),
    ],
    data: '0x',
    blockNumber: toQuantity(GENESIS),
    blockHash: toBeHex(GENESIS, 32),
    transactionHash: toBeHex(index, 32),
    transactionIndex: '0x0',
    logIndex: toQuantity(index),
  }));
  let calls = 0;
  const blockOf = (number: number): object => ({
    number: toQuantity(number),
    hash: toBeHex(number, 32),
    parentHash: toBeHex(number - 1, 32),
    timestamp: toQuantity(number),
    logsBloom: bloomOf(number),
    transactions: [toBeHex(number + HEAD, 32)],
  });
  const send = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    calls++;
    const [first] = params;
    switch (method) {
      case 'eth_getBlockByNumber':
      case 'eth_getBlockByHash':
        return blockOf(Number(first));
      case 'eth_getTransactionReceipt': {
        const blockHash = toBeHex(Number(first) - HEAD, 32);
        return { transactionHash: first, blockHash, logs: [] };
      }
      case 'eth_getLogs': {
        const filter = first as LogFilter;
        const blocks =
          filter.fromBlock === undefined ? 1 : Number(filter.toBlock) - Number(filter.fromBlock) + 1;
        if (!allows(filter, blocks)) throw refusal();
        const isOfMints = Number(filter.fromBlock) <= GENESIS;
        return isOfMints && filter.address?.includes(CONTRACTS.titleEscrowFactory) ? mints : [];
      }
      default:
        throw refusal();
    }
  };
  const sendBatch: Node['sendBatch'] = (method, params) =>
    Promise.all(params.map((one) => send(method, one)));
  const node: Node = {
    name: 'a chain in memory',
    time: systemTime,
    learned: nothingLearned(),
    send,
    sendBatch,
    subscribe: () => () => undefined,
    close: () => undefined,
  };
  return { client: chainOfOne(node), calls: () => calls };
}

function refusal(): Error {
  return Object.assign(new Error('refused'), { error: { code: -32000, message: 'refused' } });
}

/** A filter of which a fifth of the bits is set, by the block's number. */
function bloomOf(number: number): string {
  let state = number + 1;
  const bytes = Buffer.alloc(256);
  for (let bit = 0; bit < 2_048; bit++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    if ((state >>> 16) % 5 === 0) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (1 << (bit & 7));
  }
  return `0x${bytes.toString('hex')}`;
}
