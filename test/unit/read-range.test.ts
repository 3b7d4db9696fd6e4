import { expect } from 'chai';
import { keccak256, toBeHex, toQuantity, ZeroAddress, zeroPadValue } from 'ethers';
import { messageOf } from '../../service/base/errors';
import type { Chain } from '../../service/chain/chain';
import { connectSeveral } from '../../service/chain/connect-nodes';
import { existingBlock } from '../../service/chain/read-chain';
import {
  escrowInterface,
  factoryInterface,
  registryInterface,
  titleEscrowAddress,
} from '../../service/registry/registry-contracts';
import { expectLogs } from '../../service/watcher/pruned-logs';
import { KnownEscrows } from '../../service/watcher/known-escrows';
import { readLogs, type LogsWanted } from '../../service/watcher/log-ways';
import { readRange } from '../../service/watcher/read-range';
import { AMOY, chainOf } from '../helpers/chain/fake-nodes';
import { VirtualTime } from '../helpers/virtual-time';

const CONTRACTS = {
  registry: `0x${'11'.repeat(20)}`,
  titleEscrowFactory: `0x${'22'.repeat(20)}`,
  titleEscrowImplementation: `0x${'33'.repeat(20)}`,
};
const [HEAD, MINTS, NOMINATION] = [200, 10, 198];
const TOKENS = 30;

interface Log {
  address: string;
  topics: string[];
  blockNumber: number;
  [other: string]: unknown;
}
interface Filter {
  fromBlock?: string;
  toBlock?: string;
  blockHash?: string;
  address?: string[];
  topics?: (string[] | string | null)[];
}

/** A contract that is not of the registry. */
const OTHER = `0x${'44'.repeat(20)}`;
/** By this hash a node is asked what it says of unknown ones. */
const NO_BLOCK = toBeHex(1, 32);
const hashOf = (block: number): string => toBeHex(block + 1, 32);
const transactionOf = (block: number): string => toBeHex(1_000 + block, 32);
const logIn = (block: number, address: string, index: number, topics: string[], data = '0x'): Log => ({
  address,
  topics,
  data,
  blockNumber: block,
  blockHash: hashOf(block),
  transactionHash: transactionOf(block),
  logIndex: toQuantity(index),
});
const mintIn = (block: number, tokenId: number, index = tokenId): Log =>
  logIn(block, CONTRACTS.titleEscrowFactory, index, [
    factoryInterface.getEvent('TitleEscrowCreated').topicHash,
    zeroPadValue(titleEscrowAddress(CONTRACTS, BigInt(tokenId)), 32),
    zeroPadValue(CONTRACTS.registry, 32),
    toBeHex(tokenId, 32),
  ]);
const nominationIn = (block: number, tokenId: number): Log => {
  const values = [ZeroAddress, ZeroAddress, CONTRACTS.registry, tokenId, '0x'];
  const { topics, data } = escrowInterface.encodeEventLog('Nomination', values);
  return logIn(block, titleEscrowAddress(CONTRACTS, BigInt(tokenId)), 0, topics, data);
};

function bloomOf(logs: readonly Log[]): string {
  const bloom = Buffer.alloc(256);
  for (const word of logs.flatMap(({ address, topics }) => [address, ...topics])) {
    const hash = Buffer.from(keccak256(word).slice(2), 'hex');
    for (const pair of [0, 2, 4]) {
      const bit = hash.readUInt16BE(pair) % 2_048;
      const at = 255 - (bit >> 3);
      bloom[at] = (bloom[at] ?? 0) | (1 << (bit & 7));
    }
  }
  return `0x${bloom.toString('hex')}`;
}

type Lie = (method: string, params: readonly unknown[]) => unknown;
const refusal = (message: string, code = -32000): Error =>
  Object.assign(new Error('could not coalesce error'), { error: { code, message } });

/** A node of a chain in memory. A lie that is undefined lets it answer honestly. */
function nodeOf(logs: readonly Log[], lie: Lie = () => undefined): Chain {
  const inBlock = (block: number): Log[] => logs.filter(({ blockNumber }) => blockNumber === block);
  const send = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    const lied = lie(method, params);
    if (lied instanceof Error) throw lied;
    if (lied !== undefined) return lied;
    const [first] = params;
    const number = method === 'eth_getBlockByHash' ? Number(first) - 1 : Number(first);
    switch (method) {
      case 'eth_chainId':
        return toQuantity(AMOY.chainId);
      case 'eth_blockNumber':
        return toQuantity(HEAD);
      case 'eth_getBlockByNumber':
      case 'eth_getBlockByHash':
        return {
          number: toQuantity(number),
          hash: hashOf(number),
          parentHash: hashOf(number - 1),
          timestamp: toQuantity(number),
          logsBloom: bloomOf(inBlock(number)),
          transactions: [transactionOf(number)],
        };
      case 'eth_getTransactionReceipt': {
        const block = number - 1_000;
        const all = inBlock(block).map((log) => ({ ...log, blockNumber: toQuantity(block) }));
        return { transactionHash: first, blockHash: hashOf(block), logs: all };
      }
      case 'eth_getLogs': {
        const { fromBlock, toBlock, blockHash, address, topics = [] } = first as Filter;
        const block = blockHash === undefined ? undefined : Number(blockHash) - 1;
        if (blockHash === NO_BLOCK || Number(block) > HEAD) throw refusal('unknown block');
        const [from, to] = [Number(fromBlock ?? block), Number(toBlock ?? block)];
        return logs
          .filter((log) => log.blockNumber >= from && log.blockNumber <= to)
          .filter((log) => address?.includes(log.address) ?? true)
          .filter((log) =>
            topics.every((one, at) => one === null || [one].flat().includes(log.topics[at] ?? '')),
          )
          .map((log) => ({ ...log, blockNumber: toQuantity(log.blockNumber) }));
      }
      default:
        throw refusal('Method not found', -32601);
    }
  };
  return chainOf(send);
}

const asAnswer = (log: Log): object => ({ ...log, blockNumber: toQuantity(log.blockNumber) });
const needsAddress: Lie = (method, [filter]) =>
  method === 'eth_getLogs' && (filter as Filter).address === undefined
    ? refusal('specify an address')
    : undefined;
const created = logIn(1, CONTRACTS.registry, 0, [registryInterface.getEvent('RoleGranted').topicHash]);
const mints = [created, ...Array.from({ length: TOKENS }, (_, tokenId) => mintIn(MINTS, tokenId))];

/** The types of the events of blocks that are read one by one. No mint is known before. */
async function typesIn(
  client: Chain,
  first: number,
  last: number,
  slowedBy: (error: unknown) => void = () => undefined,
): Promise<string[]> {
  const escrows = new KnownEscrows({ contracts: CONTRACTS, genesisBlock: 1 }, 10);
  const types: string[] = [];
  for (let number = first; number <= last; number++) {
    const block = await existingBlock(client, number);
    const { events } = await readRange({ client, escrows, slowedBy }, block, block, HEAD - number);
    types.push(...events.map(({ type }) => type));
  }
  return types;
}

describe('reading blocks from a node that gives logs only with an address', () => {
  const logs = [...mints, nominationIn(NOMINATION, 7)];
  const both =
    (...lies: Lie[]): Lie =>
    (method, params) =>
      lies.map((lie) => lie(method, params)).find((answer) => answer !== undefined);

  it('finds a nomination of one of many escrows, and says that it is asked in another way', async () => {
    const said: string[] = [];
    const slowedBy = (error: unknown): void => void said.push(messageOf(error));
    expect(await typesIn(nodeOf(logs, needsAddress), 196, HEAD, slowedBy)).to.deep.equal(['nomination']);
    expect(said[0]).to.equal(
      'To a query for logs the node answers with an error: specify an address. It is asked in another way.',
    );
  });

  it('finds it too if the node knows no logs of a hash, and answers with none', async () => {
    const silent: Lie = (method, [filter]) =>
      method === 'eth_getLogs' && (filter as Filter).blockHash !== undefined ? [] : undefined;
    const client = nodeOf(logs, both(needsAddress, silent));
    expect(await typesIn(client, 196, HEAD)).to.deep.equal(['nomination']);
  });

  it('finds it too if the node says of unknown hashes that a limit is exceeded', async () => {
    const denying: Lie = (method, [filter]) =>
      method === 'eth_getLogs' && (filter as Filter).blockHash === NO_BLOCK
        ? refusal('limit exceeded', -32005)
        : undefined;
    const client = nodeOf(logs, both(needsAddress, denying));
    expect(await typesIn(client, 196, HEAD)).to.deep.equal(['nomination']);
  });

  it('finds it if the newest mint before the first block is left out of a range of numbers', async () => {
    const late = [...mints, mintIn(194, 99, 0), nominationIn(NOMINATION, 99)];
    const behind: Lie = (method, [filter]) => {
      const { fromBlock, toBlock } = filter as Filter;
      const isRange = method === 'eth_getLogs' && fromBlock !== undefined && fromBlock !== toBlock;
      const isOver = isRange && Number(toBlock) >= 194;
      return isOver ? mints.filter(() => Number(fromBlock) <= MINTS).map(asAnswer) : undefined;
    };
    const client = nodeOf(late, both(needsAddress, behind));
    expect(await typesIn(client, 196, HEAD)).to.deep.equal(['nomination']);
  });

  for (const [how, answer] of [
    ['says so', refusal('pruned history unavailable', 4444)],
    ['answers with no logs', []],
  ] as const)
    it(`reads by receipts if it has removed the blocks of the mints, and ${how}`, async () => {
      const pruned: Lie = (method, [filter]) =>
        method === 'eth_getLogs' && Number((filter as Filter).fromBlock ?? HEAD) < 150 ? answer : undefined;
      const client = nodeOf(logs, both(needsAddress, pruned));
      expect(await typesIn(client, 196, HEAD)).to.deep.equal(['nomination']);
    });
});

describe('reading a block by its number', () => {
  /** The first node behind the URL lacks the block. The next one gives its receipts and logs. */
  const behindAtFirst = (given: readonly object[] = []): Lie => {
    let isBehind = true;
    return (method, [filter]) => {
      if (method === 'eth_getTransactionReceipt') isBehind = false;
      if (method !== 'eth_getLogs') return undefined;
      if ((filter as Filter).blockHash !== undefined) return refusal('unknown field blockHash', -32602);
      return isBehind ? given : undefined;
    };
  };
  const logs = [nominationIn(NOMINATION, 7)];

  for (const [what, logsBloom] of [
    ['has no Bloom filter', '0x'],
    ['has an empty Bloom filter', `0x${'00'.repeat(256)}`],
    ['has a full Bloom filter', `0x${'ff'.repeat(256)}`],
  ] as const)
    it(`reads its receipts if the node knows no logs of a hash, and the header ${what}`, async () => {
      const node = nodeOf(logs, behindAtFirst());
      const send: Chain['send'] = async (method, params) => {
        const answer = await node.send(method, params);
        return method.startsWith('eth_getBlockBy') ? { ...(answer as object), logsBloom } : answer;
      };
      expect(await typesIn(chainOf(send), NOMINATION, NOMINATION)).to.deep.equal(['nomination']);
    });

  it('reads its receipts if all logs are of another block and of another registry', async () => {
    const other = { ...nominationIn(NOMINATION, 7), address: OTHER, blockHash: hashOf(7) };
    const node = nodeOf(logs, behindAtFirst([asAnswer(other)]));
    expect(await typesIn(node, NOMINATION, NOMINATION)).to.deep.equal(['nomination']);
  });
});

describe('reading a block by its receipts', () => {
  it('believes no header of another node about its logs and transactions', async () => {
    const client = nodeOf([nominationIn(NOMINATION, 7)], (method) =>
      method === 'eth_getLogs' ? refusal('Method not found', -32601) : undefined,
    );
    const block = { ...(await existingBlock(client, NOMINATION)), isEmpty: true };
    const wanted: LogsWanted = {
      escrows: new KnownEscrows({ contracts: CONTRACTS, genesisBlock: 1 }, 10),
      first: block,
      last: block,
      ahead: 0,
      byHash: true,
      isOfThisNode: false,
      learnMints: async () => undefined,
      byReceipts: new Map(),
    };
    const { way, logs } = await readLogs(client, wanted);
    expect([way, logs.length]).to.deep.equal(['receipts', 1]);
  });
});

describe('reading a block from several nodes', () => {
  const logs = [nominationIn(NOMINATION, 7)];
  const byHash = (method: string, [filter]: readonly unknown[]): boolean =>
    method === 'eth_getLogs' && (filter as Filter).blockHash !== undefined;
  const silent: Lie = (method, params) => (byHash(method, params) ? [] : undefined);
  const honest: Lie = () => undefined;
  /** The header of a liar says that the block has no logs. */
  const denying: Lie = (method, params) => {
    if (method === 'eth_getLogs') return [];
    if (method !== 'eth_getBlockByNumber') return undefined;
    const number = Number(params[0]);
    return {
      number: toQuantity(number),
      hash: hashOf(number),
      parentHash: hashOf(number - 1),
      timestamp: toQuantity(number),
      logsBloom: '0x01',
    };
  };

  for (const [nodes, lies] of [
    ['one of two gives none for the hash of a block', [honest, silent]],
    ['two give none for a hash, and the header of the third one denies it', [denying, silent, silent]],
  ] satisfies [string, Lie[]][])
    it(`finds its event if ${nodes}`, async () => {
      const time = new VirtualTime();
      const chains = lies.map((lie) => nodeOf(logs, lie));
      const { client } = connectSeveral(
        chains.map(({ learned, ...chain }, index) => ({
          ...chain,
          learned,
          time,
          name: `http://node-${index}`,
        })),
        AMOY,
        time,
      );
      expect(await time.settled(typesIn(client, NOMINATION, NOMINATION))).to.deep.equal(['nomination']);
      client.close();
    });
});

describe('a block that a node does not have', () => {
  const absentFrom =
    (isAbsent: (block: number) => boolean): Lie =>
    (method, [block]) =>
      method === 'eth_getBlockByNumber' && isAbsent(Number(block)) ? null : undefined;
  const prunedAt = async (isAbsent: (block: number) => boolean): Promise<string | undefined> =>
    prunedBy(nodeOf([], absentFrom(isAbsent)));
  const prunedBy = async (client: Chain): Promise<string | undefined> => {
    const time = client.time as VirtualTime;
    const asked = expectLogs(client, CONTRACTS.registry, 20, { newest: HEAD });
    return time.settled(asked.then(() => undefined, messageOf));
  };

  it('was removed if it lacks all blocks up to a later one', async () =>
    expect(await prunedAt((block) => block < 150)).to.contain('no logs before block 150,'));

  it('was removed if the header of the next block with logs says so, and its receipts are gone', async () => {
    const mintsOfAll = Array.from({ length: 30 }, (_, at) => mintIn(25 + 6 * at, at));
    const silentBefore =
      (block: number): Lie =>
      (method, [first]) => {
        if (method === 'eth_getTransactionReceipt') return Number(first) - 1_000 < block ? null : undefined;
        return method === 'eth_getLogs' && Number((first as Filter).blockHash ?? HEAD) - 1 < block
          ? []
          : undefined;
      };
    expect(await prunedBy(nodeOf(mintsOfAll, silentBefore(100)))).to.contain('no logs before block 98,');
    expect(await prunedBy(nodeOf(mintsOfAll, silentBefore(20)))).to.equal(undefined);
  });

  it('was not if another node behind the same URL has it', async () => {
    let asked = 0;
    expect(await prunedAt((block) => block === 20 && asked++ < 2)).to.equal(undefined);
  });

  it('was not if the node lacks the newest blocks too', async () =>
    expect(await prunedAt((block) => block > 10)).to.equal(undefined));
});
