import { expect } from 'chai';
import { systemTime, newDeferred } from '../../service/base/time';
import { freePort } from '../../devnet/place';
import { messageOf } from '../../service/base/errors';
import { headOf } from '../../service/chain/read-chain';
import { connectNode, type Chain } from '../../service/chain/chain';
import { headNumberOf } from '../../service/chain/read-chain';
import { broadcast } from '../../service/chain/transactions';
import { simulationFailed } from '../../service/registry/simulate-mint';
import { eventually } from '../helpers/eventually';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { whileFollowing } from '../helpers/processes/followed-registry';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { BOMB, startRpcProxy } from '../helpers/chain/rpc-proxy';
import { startSocketFront } from '../helpers/chain/socket-front';
import { startTcpProxy, type TcpProxy } from '../helpers/processes/tcp-proxy';
import { stopLater } from '../helpers/resources';
import { makeTraffic } from '../helpers/chain/traffic';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

describe('the service with a node over WebSocket', () => {
  const local = localSetupOfSuite();

  /** Runs `act` with a proxy in front of the node that can cut its connections. */
  async function throughTcp(
    act: (proxy: TcpProxy, url: string) => Promise<void>,
    sought?: string,
  ): Promise<void> {
    const proxy = await startTcpProxy(Number(new URL(local.node.url).port), sought);
    await act(proxy, `ws://127.0.0.1:${proxy.port}`).finally(() => proxy.close());
  }

  it('delivers each event once when the connection is cut repeatedly meanwhile', () =>
    throughTcp((proxy, RPC_URL) =>
      whileFollowing(local, { settings: { RPC_URL } }, async (followed) => {
        for (let round = 0; round < 2; round++) {
          await followed.caughtUp();
          const traffic = makeTraffic(local, { tokens: 2, rounds: 2 });
          for (let cuts = 0; cuts < 3; cuts++)
            await followed.until('it is connected', () => proxy.cut() || undefined);
          await traffic;
          proxy.refuse();
          await makeTraffic(local, { tokens: 1, rounds: 1 });
          proxy.accept();
        }
        await followed.allDeliveredOnce();
      }),
    ));

  it('subscribes to new blocks again on every connection after a broken one', () =>
    throughTcp(
      (proxy, RPC_URL) =>
        whileFollowing(local, { settings: { RPC_URL } }, async (followed) => {
          for (let connection = 0; connection < 3; connection++) {
            await mineBlocks(local, 1);
            await followed.caughtUp();
            // Now time stands still, and nothing is polled.
            const before = proxy.sightings();
            await mineBlocks(local, 1);
            await eventually('the node tells of a block', () => proxy.sightings() > before);
            proxy.cut();
          }
        }),
      '"eth_subscription"',
    ));

  it('connects again after answers that are too large, and reads such ranges in parts', async () => {
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    await makeTraffic(local, { tokens: 2, rounds: 1 });
    await local.client.send('hardhat_mine', ['0x7d0']);
    const proxy = await startRpcProxy(local.node.url, () => BOMB);
    const front = await startSocketFront(proxy.url);
    const settings = { RPC_URL: front.url };
    await whileFollowing(local, { settings, fromBlock }, async (followed) => {
      const failed = 'the chain cannot be read: ';
      const line = await followed.until('it fails', () =>
        followed.service.log.find(({ msg }) => msg?.startsWith(failed)),
      );
      expect(line.msg).to.contain('larger than 64 MB');
      const [feed] = (await healthOf(followed.service.url)).feeds;
      expect(feed).to.include({ state: 'failing', code: 'RPC_UNREACHABLE' });
      expect(feed).to.have.property('reason').that.contains('larger than 64 MB');
      const since = proxy.requests.length;
      proxy.answer((_, [filter]) => (widthOf(filter) > 600 ? BOMB : 'none'));
      await followed.allDeliveredOnce();
      const widths = proxy.requests.slice(since).map(({ params: [filter] }) => widthOf(filter));
      expect(Math.max(...widths)).to.be.greaterThan(600);
    });
  });

  it('runs without the node, and logs that it does not answer', async () => {
    const settings = { RPC_URL: `ws://127.0.0.1:${await freePort(0)}` };
    await whileFollowing(local, { settings }, async ({ service }) => {
      expect((await fetch(service.url)).status).to.equal(200);
      expect(service.log.some(({ msg }) => msg?.includes('does not answer'))).to.equal(true);
    });
  });

  it('shares one connection between requests that come while it opens', () =>
    throughTcp(async (proxy, url) => {
      const client = connectNode(url, {}, systemTime);
      stopLater('the client', () => client.close());
      await Promise.all(Array.from({ length: 5 }, () => headNumberOf(client)));
      expect(proxy.cut()).to.equal(1);
      await eventually('a new connection', () => headNumberOf(client).then(Boolean, () => false));
      expect(proxy.cut()).to.equal(1);
    }));

  for (const [words, id] of [
    ['no id', undefined],
    ['the id null', null],
    ['the id 0', 0],
    ['the id -1', -1],
    ['an id that is text', 'x'],
  ] as const) {
    const error = { code: -32000, message: 'the node has a headache' };

    it(`fails the open requests with the node's words when its errors have ${words}`, async () => {
      const hanging = new Promise<never>(() => undefined);
      const proxy = await startRpcProxy(local.node.url, () => hanging);
      const front = await startSocketFront(proxy.url);
      const client = patientClient(front.url);
      const open: Promise<unknown>[] = [
        client.send('eth_call', [{}, 'latest']).catch((thrown: unknown) => thrown),
        headNumberOf(client).catch((thrown: unknown) => thrown),
        broadcast(client, '0x02').then((outcome) => 'cause' in outcome && outcome),
      ];
      let ended = 0;
      const ends = open.map((one) => one.finally(() => ended++));
      await eventually('all end', () => {
        front.say({ jsonrpc: '2.0', id, error });
        return ended === open.length;
      });
      const [ofCall, ofHead, ofSend] = await Promise.all(ends);
      for (const thrown of [ofCall, ofHead]) expect(messageOf(thrown)).to.contain(error.message);
      // The simulation of a mint can be repeated, and the node may have the transaction.
      expect(simulationFailed(ofCall)).to.include({ code: 'RPC_UNREACHABLE', retryable: true });
      expect(ofSend).to.have.property('state', 'open');
    });

    it(`repeats the open requests after one error with ${words}, and goes on reporting blocks`, async () => {
      let isHanging = true;
      const hanging = new Promise<never>(() => undefined);
      const proxy = await startRpcProxy(local.node.url, () => (isHanging ? hanging : 'none'));
      const front = await startSocketFront(proxy.url);
      const client = patientClient(front.url);
      const told = new Promise<void>((resolve) => client.subscribe(() => resolve()));
      const open = [client.send('eth_chainId', []), headNumberOf(client)];
      await eventually('they are asked', () => proxy.calls.includes('eth_blockNumber'));
      isHanging = false;
      front.say({ jsonrpc: '2.0', id, error });
      expect(await Promise.all(open)).to.deep.equal(['0x7a69', await local.client.getBlockNumber()]);
      front.report({});
      await told;
    });
  }

  it('goes on waiting for its answers when the node refuses the subscription', async () => {
    const answered = newDeferred<'none'>();
    const proxy = await startRpcProxy(local.node.url, () => answered.promise);
    const front = await startSocketFront(proxy.url);
    const client = connectNode(front.url, {}, systemTime);
    stopLater('the client', () => client.close());
    const head = headNumberOf(client);
    await eventually('it is asked', () => proxy.calls.includes('eth_blockNumber'));
    front.say({ jsonrpc: '2.0', id: 2 ** 31 - 1, error: { code: -32601, message: 'no subscriptions' } });
    answered.resolve('none');
    expect(await head).to.equal(await local.client.getBlockNumber());
    expect(proxy.counts().eth_blockNumber).to.equal(1);
  });

  it('asks for the newest block once the node has reported none since, or not a block', async () => {
    const proxy = await startRpcProxy(local.node.url);
    const front = await startSocketFront(proxy.url);
    const client = connectNode(front.url, {}, systemTime);
    stopLater('the client', () => client.close());
    const asked = () => proxy.counts().eth_getBlockByNumber ?? 0;
    const reported = async (head: unknown) => {
      const told = new Promise<void>((resolve) => client.subscribe(() => resolve()));
      front.report(head);
      await told;
    };
    const newest = await headOf(client);
    expect(asked()).to.equal(1);
    const header = { hash: newest.hash, parentHash: newest.parentHash, timestamp: '0x1' };
    await reported({ ...header, number: '0x7' });
    await reported({ ...header, number: '0x8' });
    expect(await headOf(client)).to.include({ number: 8, hash: newest.hash });
    expect(asked()).to.equal(1);
    expect(await headOf(client)).to.deep.equal(newest);
    for (const wrong of [null, 'block', {}, { ...header, number: 'eight' }]) {
      await reported(wrong);
      expect(await headOf(client)).to.deep.equal(newest);
    }
    expect(asked()).to.equal(6);
  });
});

/** The number of blocks that a filter of logs asks for; 0 for other parameters. */
function widthOf(filter: unknown): number {
  const { fromBlock, toBlock } = (filter ?? {}) as { fromBlock?: string; toBlock?: string };
  return fromBlock === undefined ? 0 : Number(toBlock) - Number(fromBlock) + 1;
}

/** Its requests end by the node's words, not by the time. */
function patientClient(url: string): Chain {
  const client = connectNode(url, {}, systemTime, 'single', 2 ** 31 - 1);
  stopLater('the client', () => client.close());
  return client;
}
