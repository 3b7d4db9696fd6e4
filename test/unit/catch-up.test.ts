import { expect } from 'chai';
import { ChainError } from '../../service/base/errors';
import { createLogger } from '../../service/base/logger';
import {
  newFeedStatus,
  progressOf,
  CatchUpReport,
  type FeedStatus,
  type Progress,
} from '../../service/watcher/feed-status';
import { VirtualTime } from '../helpers/virtual-time';

const FIRST_BLOCK = 100;
const LAST_BLOCK = 1_099;
const BLOCKS = LAST_BLOCK + 1 - FIRST_BLOCK;

describe('the log lines about a catch-up', () => {
  let time: VirtualTime;
  let status: FeedStatus;
  let report: CatchUpReport;
  let lines: Record<string, unknown>[];

  beforeEach(() => {
    time = new VirtualTime();
    status = newFeedStatus(time.now());
    lines = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[0]) };
    const logger = createLogger({ level: 'info', mask: (text) => text, destination });
    report = new CatchUpReport(status, { time, logger, mask: (text) => text.replace('secret', '[secret]') });
    readUpTo(FIRST_BLOCK);
  });

  afterEach(() => report.stop());

  function readUpTo(nextBlock: number, lastBlock = LAST_BLOCK): void {
    status.nextBlock = nextBlock;
    report.noteBlocks(lastBlock);
  }

  it('come every ten seconds, with the blocks read, their rate and the time left once known', async () => {
    await time.pass(9_999);
    expect(lines).to.deep.equal([]);
    await time.pass(1);
    readUpTo(FIRST_BLOCK + 500);
    await time.pass(10_000);
    expect(lines.map(({ level, msg }) => [level, msg])).to.deep.equal(
      lines.map(() => ['info', 'catching up with the chain']),
    );
    expect(lines).to.have.length(2);
    expect(lines[0]).to.deep.include({
      nextBlock: FIRST_BLOCK,
      blocksRead: 0,
      blocks: BLOCKS,
      blocksPerSecond: 0,
    });
    expect(lines[0]).not.to.have.property('secondsLeft');
    expect(lines[1]).to.deep.include({
      nextBlock: FIRST_BLOCK + 500,
      blocksRead: 500,
      blocks: BLOCKS,
      blocksPerSecond: 25,
      secondsLeft: 20,
    });
  });

  it('end with one when the last block is read', async () => {
    await time.pass(20_000);
    lines = [];
    readUpTo(LAST_BLOCK + 1);
    await time.pass(60_000);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.deep.include({ msg: 'caught up with the chain', blocks: BLOCKS, seconds: 20 });
  });

  it('do not come for a catch-up that is over in less than ten seconds', async () => {
    await time.pass(9_999);
    readUpTo(LAST_BLOCK + 1);
    await time.pass(60_000);
    expect(lines).to.deep.equal([]);
  });

  it('do not come any more when the feed forgets the catch-up', async () => {
    await time.pass(10_000);
    lines = [];
    report.forget();
    await time.pass(60_000);
    expect(lines).to.deep.equal([]);
  });

  it('have the rates of the last minute, whatever was read before', async () => {
    for (let second = 1; second <= 200; second++) {
      await time.pass(1_000);
      readUpTo(FIRST_BLOCK + second + (second > 100 ? 200 : 0), LAST_BLOCK + second / 2);
    }
    const { blocksPerSecond, chainBlocksPerSecond, secondsLeft, isEndless } = progress();
    expect({ blocksPerSecond, chainBlocksPerSecond, isEndless }).to.deep.equal({
      blocksPerSecond: 1,
      chainBlocksPerSecond: 0.5,
      isEndless: false,
    });
    expect(secondsLeft).to.equal((LAST_BLOCK + 101 - FIRST_BLOCK - 400) / 0.5);
    expect(status.catchUp?.marks.length).to.be.at.most(62);
    await time.pass(60_000);
    expect(progress().blocksPerSecond).to.equal(0);
  });

  it('say after a minute that it is endless if the chain is as fast', async () => {
    const said: boolean[] = [];
    for (let second = 1; second <= 61; second++) {
      await time.pass(1_000);
      readUpTo(FIRST_BLOCK + second, LAST_BLOCK + second);
      said.push(progress().isEndless);
    }
    expect(said.indexOf(true)).to.equal(59);
    expect(progress().secondsLeft).to.equal(undefined);
  });

  it('have the last failure with its code and remedy for two minutes, while blocks are read', async () => {
    const error = new ChainError('NODE_FAILED', 'no secret', { remedy: 'Ask.', retryable: true });
    report.slowedBy(error);
    await time.pass(119_999);
    readUpTo(FIRST_BLOCK + 1);
    const failure = { code: 'NODE_FAILED', reason: 'no [secret]', remedy: 'Ask.' };
    expect(progress()).to.deep.include(failure);
    expect(lines.at(-1)).to.deep.include(failure);
    await time.pass(1);
    expect(progress()).not.to.have.any.keys(failure);
    report.slowedBy(error);
    readUpTo(LAST_BLOCK + 1);
    readUpTo(FIRST_BLOCK);
    await time.pass(1_000);
    expect(progress()).not.to.have.any.keys(failure);
  });

  function progress(): Progress {
    const found = progressOf(status, time.now());
    if (found === undefined) throw new Error('it does not catch up');
    return found;
  }

  it('leave no timer behind when the feed is stopped', async () => {
    await report.stop();
    expect(time.dueCount).to.equal(0);
  });
});
