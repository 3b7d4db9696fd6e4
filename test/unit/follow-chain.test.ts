import { expect } from 'chai';
import { makeError, toQuantity, ZeroHash, zeroPadValue } from 'ethers';
import { createBlockSpan } from '../../service/chain/read-chain';
import { followChain, type ChainFollowing, type Sighting } from '../../service/watcher/follow-chain';
import { chainOf } from '../helpers/chain/fake-nodes';
import { eventually } from '../helpers/eventually';

const ADDRESS = `0x${'1'.repeat(40)}`;
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
});

type Answer = (method: string, params: [unknown]) => Promise<unknown>;

function sightings(
  send: Answer,
  alarm: ChainFollowing['alarm'],
  signal: AbortSignal,
): AsyncGenerator<Sighting> {
  return followChain({
    client: chainOf(send),
    contracts: { registry: ADDRESS, titleEscrowFactory: ADDRESS, titleEscrowImplementation: ADDRESS },
    cursor: { nextBlock: 1, kept: [] },
    origin: { number: 0, hash: ZeroHash },
    readFinalBlock: async (headBlock) => headBlock,
    finalityDepth: 1,
    span: createBlockSpan(20),
    alarm,
    signal,
  });
}

async function refuseLogs(method: string, params: [unknown]): Promise<unknown> {
  if (method !== 'eth_getLogs') return answer(method, params);
  throw makeError('could not coalesce error', 'UNKNOWN_ERROR', {
    error: { code: -32005, message: 'Too many requests' },
  });
}

/** A chain of empty blocks, each with its number as its hash. */
async function answer(_: string, [number]: [unknown]): Promise<unknown> {
  const hashOf = (block: number): string => zeroPadValue(`0x${block.toString(16).padStart(4, '0')}`, 32);
  const block = number === 'latest' ? HEAD : Number(number);
  const parentHash = block === 0 ? ZeroHash : hashOf(block - 1);
  return { number: toQuantity(block), hash: hashOf(block), parentHash, timestamp: '0x1' };
}
