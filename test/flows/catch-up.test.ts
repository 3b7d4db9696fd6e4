import { expect } from 'chai';
import { toQuantity } from 'ethers';
import { newDeferred } from '../../service/base/time';
import { healthOf, metricOf, type CatchUpHealth } from '../helpers/processes/health-and-metrics';
import { startRpcProxy, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startService, type LogLine, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { VirtualTime } from '../helpers/virtual-time';

const BLOCKS = 20_000;

describe('progress of a catch-up in which no block has events', () => {
  let local: LocalSetup;
  let node: RpcProxy;
  let service: RunningService;
  let time: VirtualTime;
  /** Until then the node does not answer for logs. */
  const answering = newDeferred<void>();
  /** Milliseconds that the node then takes for the logs of a range. */
  let delayMs = 50;
  let isBroken = false;
  let failsOnce = false;
  /** The last block of each range that failed, by its first one: shorter ranges do not. */
  const failing = new Map<unknown, unknown>();
  const WORDS = 'the archive is busy';
  const FAILURE = {
    status: 503,
    body: JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: WORDS } }),
  };

  before(async () => {
    local = await createLocalSetup();
    await local.client.send('hardhat_mine', [toQuantity(BLOCKS)]);
    node = await startRpcProxy(local.node.url, async (method, [filter]) => {
      if (method !== 'eth_getLogs') return 'none';
      if (isBroken) return 'drop request';
      const { fromBlock, toBlock } = filter as { fromBlock?: string; toBlock?: string };
      if (failsOnce && !failing.has(fromBlock)) failing.set(fromBlock, toBlock);
      await time.aside(answering.promise.then(() => time.sleep(delayMs)));
      return failsOnce && failing.get(fromBlock) === toBlock ? FAILURE : 'none';
    });
    time = VirtualTime.ofRequests();
    const settings = { ...local.settings, RPC_URL: node.url, WALLET_PRIVATE_KEY: '' };
    service = await startService(settings, { time });
  });

  after(() => answering.resolve());

  const catchUp = async (): Promise<CatchUpHealth | undefined> =>
    (await healthOf(service.url)).feeds[0]?.catchUp;
  const linesOf = (text: string): LogLine[] => service.log.filter(({ msg }) => msg === text);

  it('is reported as 0 of all blocks, without time left, while the node does not answer', async () => {
    const told = await time.until('GET /health tells it', catchUp);
    expect(told.blocksRead).to.equal(0);
    expect(told.blocks).to.be.within(BLOCKS, BLOCKS + 20);
    expect(told.blocksPerSecond).to.equal(0);
    expect(told).not.to.have.property('secondsLeft');
    const [line] = await time.until('the log tells it', () => {
      const found = linesOf('catching up with the chain');
      return found.length > 0 ? found : undefined;
    });
    expect(line).to.deep.include({ level: 'info', blocksRead: 0, blocks: told.blocks });
  });

  it('is reported again with the blocks read, their rate and the time left', async () => {
    answering.resolve();
    const told = await time.until('blocks are read', async () => {
      const now = await catchUp();
      return now !== undefined && now.blocksRead > 0 ? now : undefined;
    });
    const { blocksRead, blocks, blocksPerSecond, secondsLeft } = told;
    expect(blocksPerSecond).to.be.greaterThan(0);
    expect(secondsLeft).to.be.closeTo((blocks - blocksRead) / blocksPerSecond, 2);
  });

  it('is kept while the node fails', async () => {
    const before = await catchUp();
    isBroken = true;
    const failures = (): LogLine[] =>
      service.log.filter(({ msg }) => msg?.startsWith('the chain cannot be read'));
    await time.until('it fails', () => failures().length > 0);
    const meanwhile = await catchUp();
    expect(meanwhile?.blocksRead).to.be.at.least(before?.blocksRead ?? NaN);
    isBroken = false;
  });

  it('has reason and rates while blocks are read between failures, and makes a condition', async () => {
    delayMs = 2_000;
    failsOnce = true;
    const states = new Set<string>();
    const behind = await time.until('the feed is behind', async () => {
      const { httpStatus, feeds, conditions = [] } = await healthOf(service.url);
      const [feed] = feeds;
      const condition = conditions.find(({ what }) => what === 'feed_behind');
      const code = feed?.catchUp?.code;
      if (states.size > 0 || code === 'NODE_FAILED') states.add(`${httpStatus} ${feed?.state} ${code}`);
      return condition?.message.includes(WORDS) && feed?.state === 'following' ? condition : undefined;
    });
    failsOnce = false;
    delayMs = 0;
    expect(behind.message).to.match(
      /^The service is behind .*: it reads about [\d.]+ blocks a second, and the chain makes about 0\. .*busy\.$/,
    );
    expect(behind).to.include({ severity: 'warning' });
    expect(behind.remedy).to.contain('RPC_URL');
    expect([...states].sort()).to.deep.equal(['200 failing NODE_FAILED', '200 following NODE_FAILED']);
    expect(await metricOf(service.url, 'etr_feed_blocks_per_second')).to.be.greaterThan(0);
    expect(await metricOf(service.url, 'etr_feed_chain_blocks_per_second')).to.equal(0);
  });

  it('ends with one log line when the last block is read, and is not reported afterwards', async () => {
    delayMs = 0;
    const [over] = await time.until('it is over', () => {
      const found = linesOf('caught up with the chain');
      return found.length > 0 ? found : undefined;
    });
    expect(over?.blocks).to.be.within(BLOCKS, BLOCKS + 20);
    expect(over?.seconds).to.be.greaterThan(0);
    await local.client.send('hardhat_mine', ['0x3']);
    await time.until('the next blocks are read', async () => {
      const [feed] = (await healthOf(service.url)).feeds;
      return feed?.nextBlock === (await local.client.getBlockNumber()) + 1;
    });
    expect(await catchUp()).to.equal(undefined);
    expect(linesOf('caught up with the chain')).to.have.length(1);
  });
});
