import { expect } from 'chai';
import { createLogger } from '../../service/base/logger';
import {
  newFeedStatus,
  reportCatchUp,
  type CatchUpReport,
  type FeedStatus,
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
    report = reportCatchUp(status, { time, logger });
    readUpTo(FIRST_BLOCK);
  });

  afterEach(() => report.stop());

  function readUpTo(nextBlock: number): void {
    status.nextBlock = nextBlock;
    report.seen(LAST_BLOCK);
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

  it('leave no timer behind when the feed is stopped', async () => {
    await report.stop();
    expect(time.dueCount).to.equal(0);
  });
});
