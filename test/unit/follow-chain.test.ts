import { expect } from 'chai';
import { makeError, toQuantity, ZeroHash, zeroPadValue } from 'ethers';
import { codeOf } from '../../service/base/errors';
import { BlockSpan } from '../../service/chain/read-chain';
import { registryInterface } from '../../service/registry/registry-contracts';
import { followChain, type ChainFollowing, type Sighting } from '../../service/watcher/follow-chain';
import { KnownEscrows } from '../../service/watcher/known-escrows';
import { chainOf } from '../helpers/chain/fake-nodes';
import { eventually } from '../helpers/eventually';

const ADDRESS = `0x${'1'.repeat(40)}`;
const CONTRACTS = { registry: ADDRESS, titleEscrowFactory: ADDRESS, titleEscrowImplementation: ADDRESS };
const HEAD = 100;

describe('following a chain', () => {
  it('pauses when the provider throttles ranges', async () => {
    const end = new AbortController();
    const done: string[] = [];
    const alarm = {
      wait: async () => (done.push('wait'), end.abort()),
      quicken: () => void done.push('quicken'),
    };
    const kinds: string[] = [];
    await (async () => {
      for await (const { kind } of sightings(refuseLogs, alarm, end.signal)) kinds.push(kind);
    })().catch((error: unknown) => expect(error).to.equal(end.signal.reason));
    expect(kinds).to.deep.equal(['unchanged']);
    expect(done).to.deep.equal(['quicken', 'wait']);
  });

  it('reads the next range while the caller stores the last one', async () => {
    const end = new AbortController();
    const alarm = { wait: async () => end.abort(), quicken: () => undefined };
    const asked: string[] = [];
    const client: Answer = async (method, params) => {
      if (method !== 'eth_getLogs') return answer(method, params);
      asked.push((params[0] as { fromBlock: string }).fromBlock);
      return [];
    };
    const ranges: number[] = [];
    for await (const sighting of sightings(client, alarm, end.signal)) {
      if (sighting.kind !== 'range') continue;
      ranges.push(sighting.fromBlock);
      const next = toQuantity(sighting.toBlock + 1);
      if (sighting.toBlock < 50) await eventually('the next range', () => asked.includes(next));
      else break;
    }
    expect(ranges.length).to.be.greaterThan(1);
  });

  it('fails, and so pauses, while every second answer of a URL is of another branch', async () => {
    const [read, next] = [10, 11];
    let asked = 0;
    const client: Answer = async (method, [number]) => {
      if (method === 'eth_getLogs') return [];
      const block = await answer(method, [number]);
      if (number !== toQuantity(next)) return block;
      return ++asked % 2 === 0 ? block : { ...block, hash: hashOf(99), parentHash: hashOf(98) };
    };
    const alarm = { wait: async () => undefined, quicken: () => undefined };
    const cursor = { nextBlock: next, kept: [{ number: read, hash: hashOf(read) }] };
    const { signal } = new AbortController();
    const feed = { cursor, readFinalBlock: async () => next };
    const kinds: string[] = [];
    const following = (async () => {
      for await (const { kind } of sightings(client, alarm, signal, feed)) kinds.push(kind);
    })();
    expect(codeOf(await following.catch((error: unknown) => error))).to.equal('BLOCK_CHANGED');
    expect(kinds).to.deep.equal(['unchanged']);
  });

  for (const left of ['first', 'second'])
    it(`finds the events of a range that the ${left} of two answers leaves out`, async () => {
      const block = 5;
      const fragment = registryInterface.getEvent('PauseWithRemark');
      const transactionHash = ZeroHash;
      const log = {
        ...registryInterface.encodeEventLog(fragment, [ADDRESS, '0x']),
        address: ADDRESS,
        blockNumber: toQuantity(block),
        blockHash: hashOf(block),
        transactionHash,
        logIndex: '0x0',
      };
      let asked = 0;
      const client: Answer = async (method, params) => {
        if (method === 'eth_getTransactionReceipt')
          return { transactionHash, blockHash: hashOf(block), logs: [log] };
        if (method !== 'eth_getLogs') return answer(method, params);
        const isOfRegistry = 'address' in (params[0] as object);
        if (!isOfRegistry) return [];
        asked++;
        return asked === (left === 'first' ? 1 : 2) ? [] : [log];
      };
      const alarm = { wait: async () => undefined, quicken: () => undefined };
      const { signal } = new AbortController();
      const types: string[] = [];
      for await (const sighting of sightings(client, alarm, signal)) {
        if (sighting.kind !== 'range') continue;
        types.push(...sighting.events.map(({ type }) => type));
        if (sighting.toBlock > block) break;
      }
      expect(types).to.deep.equal(['registry_paused']);
    });

  describe('compares the newest block read with the chain:', () => {
    const READ = 10;
    const ORIGIN = { number: 0, hash: hashOf(0) };
    const missing = { [toQuantity(READ)]: undefined };

    for (const [name, head, blocks, origin, expected] of [
      ['it is there', READ + 2, {}, ORIGIN, { kind: 'unchanged', isAllThere: true }],
      ['the head is before it', READ - 1, {}, ORIGIN, { kind: 'unchanged', isAllThere: false }],
      ['the node lacks it', READ + 2, missing, ORIGIN, { kind: 'unchanged', isAllThere: false }],
      ['there is another', READ + 2, { [toQuantity(READ)]: hashOf(1) }, ORIGIN, { kind: 'mismatch' }],
      [
        'the chain is another one that lacks it',
        READ + 2,
        missing,
        { ...ORIGIN, hash: hashOf(1) },
        { kind: 'mismatch' },
      ],
    ] as const)
      it(name, async () => {
        const client: Answer = async (method, [number]) => {
          const asked = number === 'latest' ? toQuantity(head) : String(number);
          const block = await answer(method, [asked]);
          if (!(asked in blocks)) return block;
          const hash = (blocks as Record<string, string | undefined>)[asked];
          return hash === undefined ? null : { ...block, hash };
        };
        const kept = [8, 9, READ].map((number) => ({ number, hash: hashOf(number) }));
        const alarm = { wait: async () => undefined, quicken: () => undefined };
        const { signal } = new AbortController();
        const following = sightings(client, alarm, signal, { cursor: { nextBlock: READ + 1, kept }, origin });
        const { value } = await following.next();
        await following.return();
        expect(value).to.include(expected);
      });
  });
});

type Answer = (method: string, params: [unknown]) => Promise<unknown>;

function sightings(
  send: Answer,
  alarm: ChainFollowing['alarm'],
  signal: AbortSignal,
  feed: Partial<Pick<ChainFollowing, 'cursor' | 'origin' | 'readFinalBlock'>> = {},
): AsyncGenerator<Sighting, void, undefined> {
  return followChain({
    client: chainOf(send),
    escrows: new KnownEscrows({ contracts: CONTRACTS, genesisBlock: 1 }, 1),
    cursor: { nextBlock: 1, kept: [] },
    origin: { number: 0, hash: ZeroHash },
    readFinalBlock: async (headBlock) => headBlock,
    finalityDepth: 1,
    span: new BlockSpan(20),
    alarm,
    signal,
    ...feed,
  });
}

async function refuseLogs(method: string, params: [unknown]): Promise<unknown> {
  if (method !== 'eth_getLogs') return answer(method, params);
  throw makeError('could not coalesce error', 'UNKNOWN_ERROR', {
    error: { code: -32005, message: 'Too many requests' },
  });
}

/** A chain of empty blocks, each with its number as its hash. */
async function answer(_: string, [number]: [unknown]): Promise<object> {
  const block = number === 'latest' ? HEAD : Number(number);
  const parentHash = block === 0 ? ZeroHash : hashOf(block - 1);
  return { number: toQuantity(block), hash: hashOf(block), parentHash, timestamp: '0x1' };
}

function hashOf(block: number): string {
  return zeroPadValue(`0x${block.toString(16).padStart(4, '0')}`, 32);
}
