import { expect } from 'chai';
import { toQuantity } from 'ethers';
import {
  whileFollowing,
  whileFollowingThroughProxy,
  type FollowedRegistry,
} from '../helpers/processes/followed-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { seededRandom } from '../helpers/seeded-random';
import { makeTraffic } from '../helpers/chain/traffic';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

/** A log of JSON-RPC. */
type Log = Record<'blockHash' | 'transactionHash', string>;

describe('the events of a registry on a faulty node', () => {
  const local = localSetupOfSuite();
  let anotherRegistry: Promise<string> | undefined;

  const another = (): Promise<string> => (anotherRegistry ??= local.makeRegistry());
  const head = (): Promise<number> => local.client.getBlockNumber();

  const throughProxy = (act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>): Promise<void> =>
    whileFollowingThroughProxy(local, {}, act);

  const asked = (
    followed: FollowedRegistry,
    { calls }: RpcProxy,
    times: number,
    since = calls.length,
  ): Promise<unknown> => followed.until('the node is asked', () => calls.length >= since + times);

  /**
   * Answers like a provider behind a load balancer: a call may reach a node that is behind the one that
   * reported the head. Like real nodes, it does not report missing data as an error: blocks are null, and
   * logs of a range are missing silently. `lag`: the head that is told, and the last block of which the node
   * has the header and the logs.
   */
  function lagging(lag: { told: number; blocks: number; logs: number }): Answerer {
    const numberOf = async (hash: unknown): Promise<number> =>
      (await local.client.getBlock(String(hash)))?.number ?? Infinity;
    return async (method, [first, ...rest], forward) => {
      const told = toQuantity(Math.max(lag.told, 0));
      if (method === 'eth_blockNumber') return { result: told };
      if (first === 'latest') return forward([told, ...rest]);
      if (method.startsWith('eth_getBlockBy')) {
        const number = method === 'eth_getBlockByHash' ? await numberOf(first) : Number(first);
        return number > lag.blocks ? { result: null } : 'none';
      }
      if (method !== 'eth_getLogs') return 'none';
      const { blockHash } = first as { blockHash?: string };
      if (blockHash !== undefined)
        return (await numberOf(blockHash)) > lag.logs
          ? { error: { code: -32000, message: 'unknown block' } }
          : 'none';
      const { result } = (await forward()) as { result: { blockNumber: string }[] };
      return { result: result.filter(({ blockNumber }) => Number(blockNumber) <= lag.logs) };
    };
  }

  it('are delivered once and in order when connections break at random', () =>
    throughProxy(async (proxy, followed) => {
      const random = seededRandom(2024);
      let broken = 0;
      proxy.answer(() => {
        const draw = random.fraction();
        if (draw < 0.3) broken++;
        return draw < 0.15 ? 'drop request' : draw < 0.3 ? 'drop answer' : 'none';
      });
      await makeTraffic(local, { tokens: 4, rounds: 5 });
      await followed.allDeliveredOnce();
      expect(broken).to.be.greaterThan(10);
    }));

  it('are delivered once and in order although answers leave out logs, repeat them or invent some', () =>
    throughProxy(async (proxy, followed) => {
      // The first answers to each question. No other answer shows that the log of a transfer is left out.
      const lies: ((logs: Log[], first: Log) => Log[])[] = [
        (logs) => logs.slice(0, -1),
        (logs, first) => [first, ...logs],
        (logs, first) => [...logs, { ...first, transactionHash: first.blockHash }],
      ];
      const told = new Map<string, number>();
      proxy.answer(async (method, params, forward) => {
        const question = JSON.stringify(params);
        if (method !== 'eth_getLogs' || !question.includes('topics')) return 'none';
        const answer = await forward();
        const logs = 'result' in answer ? (answer.result as Log[]) : [];
        const times = told.get(question) ?? 0;
        const [[first], lie] = [logs, lies[times]];
        if (first === undefined || lie === undefined) return answer;
        told.set(question, times + 1);
        return { result: lie(logs, first) };
      });
      await makeTraffic(local, { tokens: 4, rounds: 5 });
      await followed.allDeliveredOnce();
      expect([...told.values()]).to.include(lies.length);
    }));

  it('are delivered once and in order when the node lacks blocks and logs of its head', () =>
    throughProxy(async (proxy, followed) => {
      const served = await head();
      const lag = { told: served, blocks: served, logs: served };
      proxy.answer(lagging(lag));
      await makeTraffic(local, { tokens: 2, rounds: 3 });
      for (lag.told = await head(); lag.blocks < lag.told; lag.logs = lag.blocks += 3)
        await asked(followed, proxy, 4);
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
    }));

  for (const [extent, traffic] of [
    ['a block', { tokens: 1, rounds: 0 }],
    ['several blocks', { tokens: 2, rounds: 1 }],
  ] as const) {
    it(`are delivered once and in order when one node has ${extent} and another lacks the logs`, () =>
      throughProxy(async (proxy, followed) => {
        const served = await head();
        const lag = { told: served, blocks: Infinity, logs: served };
        proxy.answer(lagging(lag));
        await makeTraffic(local, traffic);
        lag.told = await head();
        const before = proxy.counts().eth_getLogs ?? 0;
        await followed.until('logs are asked for', () => (proxy.counts().eth_getLogs ?? 0) >= before + 4);
        proxy.answer(THROUGH);
        await followed.allDeliveredOnce();
      }));
  }

  it('are delivered once and in order when the head goes back for a while', () =>
    throughProxy(async (proxy, followed) => {
      await makeTraffic(local, { tokens: 2, rounds: 2 });
      await followed.settled();
      const earlier = (await head()) - 4;
      proxy.answer(lagging({ told: earlier, blocks: earlier, logs: earlier }));
      await makeTraffic(local, { tokens: 1, rounds: 1 });
      await asked(followed, proxy, 6);
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
      expect(followed.logged('chain reorganised')).to.deep.equal([]);
      expect((await healthOf(followed.service.url)).status).to.equal('ok');
    }));

  for (const [name, broken] of [
    ['first', 0],
    ['second', 1],
  ] as const) {
    it(`are delivered for one of two registries while the ${name}'s RPC is down, then for both`, async () => {
      const registries = [local.registryAddress, await another()];
      const proxies = await Promise.all(registries.map(() => startRpcProxy(local.node.url)));
      const settings = { RPC_URL: proxies[0]?.url ?? '' };
      const startBlock = (await local.client.getBlockNumber()) + 1;
      const second = { network: 'localhost', address: registries[1], rpcUrl: proxies[1]?.url, startBlock };
      const config = { registries: [second] };
      await whileFollowing(local, { settings, config }, async (followed) => {
        const [ofBroken, ofOther] = [broken, 1 - broken].map((index) => registries[index]?.toLowerCase());
        const announcedOf = (address?: string): number =>
          followed.accepted.filter(({ data }) => data.registryAddress === address).length;
        const stateOf = async (address?: string): Promise<string | undefined> =>
          (await healthOf(followed.service.url)).feeds.find(({ registry }) => registry === address)?.state;

        await followed.settled();
        await proxies[broken]?.refuse();
        for (const registryAddress of registries)
          await makeTraffic(local, { tokens: 2, rounds: 1, registryAddress });
        await followed.until('all events of the other', () => announcedOf(ofOther) === 12);
        await followed.until('it is known', async () => (await stateOf(ofBroken)) === 'failing');
        expect([await stateOf(ofOther), announcedOf(ofBroken)]).to.deep.equal(['following', 0]);
        await proxies[broken]?.accept();
        await followed.allDeliveredOnce(registries);
      });
    });
  }
});
