import { expect } from 'chai';
import { LearnedLimit } from '../../service/watcher/node-limits';
import type { ChainLog } from '../../service/chain/read-chain';
import type { DecodedLog } from '../../service/registry/decode-log';
import { titleEscrowAddress } from '../../service/registry/registry-contracts';
import { KnownEscrows } from '../../service/watcher/known-escrows';
import { VirtualTime } from '../helpers/virtual-time';

describe('what a node allows in one query', () => {
  let time: VirtualTime;
  let limit: LearnedLimit;
  /** Queries for the whole limit, of which the node allows those for `most` at most. Returns the amounts. */
  const ask = (most: number, times: number): number[] =>
    Array.from({ length: times }, () => {
      const amount = limit.value;
      if (amount > most) limit.refused(amount);
      else limit.allowed(amount);
      return amount;
    });

  beforeEach(() => {
    time = new VirtualTime();
    limit = new LearnedLimit(time, 2_000);
  });

  it('is halved until it is allowed, grows by a quarter, and is tried less often after each refusal', () => {
    expect(ask(10, 9)).to.deep.equal([2_000, 1_000, 500, 250, 125, 62, 31, 15, 7]);
    const amounts = ask(10, 1_000);
    expect(Math.max(...amounts.slice(3))).to.equal(Math.ceil(9 * 1.25));
    expect(amounts.filter((amount) => amount > 10).length).to.be.within(4, 10);
    ask(Infinity, 2_000);
    expect(limit.value).to.equal(2_000);
  });

  it('is halved once by queries that are refused together', () => {
    for (let query = 0; query < 4; query++) limit.refused(2_000);
    expect(limit.value).to.equal(1_000);
  });

  it('is an eighth after a timeout', () => {
    limit.refused(2_000, 1 / 8);
    expect(limit.value).to.equal(250);
  });

  it('is not one block after blocks were read one by one, because a wide range is refused', () => {
    limit.allowed(1);
    limit.refused(2_000);
    expect(limit.value).to.equal(1_000);
  });

  it('is closed after a refusal of one, longer each time up to ten minutes', async () => {
    const closedFor: number[] = [];
    for (let times = 0; times < 7; times++) {
      limit.refused(1);
      expect([limit.isClosed, limit.value]).to.deep.equal([true, 0]);
      const since = time.elapsed();
      await time.until('it is open', () => {
        if (limit.isClosed) time.later(1_000, () => undefined);
        return !limit.isClosed;
      });
      closedFor.push((time.elapsed() - since) / 1_000);
    }
    expect(closedFor).to.deep.equal([30, 60, 120, 240, 480, 600, 600]);
    limit.allowed(1);
    limit.refused(1);
    await time.pass(30_000);
    expect(limit.value).to.equal(1);
  });
});

describe('the title escrows that are asked for by address', () => {
  const contracts = {
    registry: `0x${'1'.repeat(40)}`,
    titleEscrowFactory: `0x${'2'.repeat(40)}`,
    titleEscrowImplementation: `0x${'3'.repeat(40)}`,
  };
  const event = (type: 'escrow_created' | 'burned', tokenId: bigint, blockNumber: number): DecodedLog => ({
    ...({ blockNumber } as ChainLog),
    type,
    tokenId,
    payload: {},
  });
  const [one, two] = [1n, 2n].map((tokenId) => titleEscrowAddress(contracts, tokenId));
  let escrows: KnownEscrows;
  let read: [first: number, last: number][];
  const learnBefore = (block: number, events: DecodedLog[] = []): Promise<void> =>
    escrows.learnBefore(block, 0, async (first, last) => {
      read.push([first, last]);
      return events.filter(({ blockNumber }) => blockNumber >= first && blockNumber <= last);
    });

  beforeEach(() => {
    escrows = new KnownEscrows({ contracts, genesisBlock: 100 }, 10);
    read = [];
  });

  it('are those minted since the first block of the registry, which are read once', async () => {
    const mints = [event('escrow_created', 1n, 100), event('escrow_created', 2n, 15_000)];
    expect(escrows.missingBefore(20_000)).to.equal(19_900);
    // As the two readings of a node do, and a later one.
    await Promise.all([learnBefore(20_000, mints), learnBefore(20_000, mints)]);
    await learnBefore(20_000, mints);
    expect(read).to.deep.equal([
      [100, 10_099],
      [10_100, 19_999],
    ]);
    expect(escrows.of(20_000, 20_009)).to.deep.equal([one, two]);
    expect(escrows.of(200, 300), 'of older blocks').to.deep.equal([one]);
  });

  it('include those of the ranges that were read since, as long as none was left out', async () => {
    await learnBefore(200);
    escrows.note([event('escrow_created', 1n, 250)], 200, 299);
    expect(escrows.missingBefore(300)).to.equal(0);
    escrows.note([event('escrow_created', 2n, 450)], 400, 499);
    expect(escrows.missingBefore(500)).to.equal(200);
    expect(escrows.of(500, 509)).to.deep.equal([one]);
  });

  it('are forgotten below the finality depth after a burn, and asked for in older blocks', async () => {
    await learnBefore(200, [event('escrow_created', 1n, 150), event('burned', 1n, 160)]);
    expect(escrows.of(170, 180)).to.deep.equal([one]);
    expect(escrows.of(171, 180)).to.deep.equal([]);
    expect(escrows.of(100, 149), 'before the mint').to.deep.equal([]);
    expect(escrows.of(100, 150)).to.deep.equal([one]);
  });

  it('are alive again when the block of a burn is no longer on the chain', async () => {
    await learnBefore(200, [event('escrow_created', 1n, 150), event('burned', 1n, 160)]);
    escrows.rewindTo(159);
    expect(escrows.of(1_000, 1_000)).to.deep.equal([one]);
    expect(escrows.missingBefore(200)).to.equal(40);
  });

  it('are alive again when the blocks of a burn are read again without it', async () => {
    await learnBefore(200, []);
    escrows.note([event('escrow_created', 1n, 200), event('burned', 1n, 205)], 200, 209);
    escrows.note([event('escrow_created', 1n, 200)], 200, 209);
    expect(escrows.of(1_000, 1_000)).to.deep.equal([one]);
  });

  it('are a few only while all mints before the block are known', async () => {
    expect(escrows.few(150, 1)).to.equal(undefined);
    await learnBefore(200, [event('escrow_created', 1n, 150), event('escrow_created', 2n, 160)]);
    expect(escrows.few(155, 1)).to.deep.equal([one]);
    expect(escrows.few(165, 1)).to.equal(undefined);
    expect(escrows.few(201, 2)).to.equal(undefined);
  });

  it('are not kept until one of them is asked for', () => {
    escrows.note([event('escrow_created', 1n, 100)], 100, 199);
    expect(escrows.of(200, 200)).to.deep.equal([]);
    expect(escrows.missingBefore(200)).to.equal(100);
  });
});
