import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { whileFollowingThroughProxy } from '../helpers/processes/following-through-proxy';
import { laggingNode } from '../helpers/chain/lagging-node';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startRpcProxy, THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { seededRandom } from '../helpers/seeded-random';
import { makeTraffic } from '../helpers/chain/traffic';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('the events of a registry on a faulty node', () => {
  let local: LocalSetup;
  let anotherRegistry: Promise<string> | undefined;

  before(async () => {
    local = await createLocalSetup();
  });

  after(() => local?.stop());

  const another = (): Promise<string> => (anotherRegistry ??= local.makeRegistry());

  const throughProxy = (
    name: string,
    act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
  ): Promise<void> => whileFollowingThroughProxy(local, { name }, act);

  it('are delivered once and in order when connections break at random', () =>
    throughProxy('random', async (proxy, followed) => {
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

  it('are delivered once and in order when the provider answers 429 for a while', () =>
    throughProxy('too-many-requests', async (proxy, followed) => {
      const before = proxy.calls.length;
      proxy.answer(() => ({ status: 429, headers: { 'Retry-After': '1' }, body: 'Too Many Requests' }));
      await makeTraffic(local, { tokens: 2, rounds: 2 });
      await eventually('calls are refused', () => proxy.calls.length >= before + 3);
      expect(await healthOf(followed.service.url)).to.include({ httpStatus: 200, status: 'ok' });
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
    }));

  it('are delivered once and in order when the node lacks blocks and logs of its head', () =>
    throughProxy('behind', async (proxy, followed) => {
      let served = await local.client.getBlockNumber();
      let told = served;
      const heads = { toldHead: () => told, lastBlock: () => served, lastLogs: () => served };
      proxy.answer(laggingNode(local.client, heads));
      await makeTraffic(local, { tokens: 2, rounds: 3 });
      told = await local.client.getBlockNumber();
      while (served < told) {
        const before = proxy.calls.length;
        await eventually('the node is asked', () => proxy.calls.length > before + 3);
        served += 3;
      }
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
    }));

  for (const [extent, traffic] of [
    ['a block', { tokens: 1, rounds: 0 }],
    ['several blocks', { tokens: 2, rounds: 1 }],
  ] as const) {
    it(`are delivered once and in order when one node has ${extent} and another lacks the logs`, () =>
      throughProxy(`logs-of-${extent}`, async (proxy, followed) => {
        const served = await local.client.getBlockNumber();
        let told = served;
        const heads = { toldHead: () => told, lastBlock: () => told, lastLogs: () => served };
        proxy.answer(laggingNode(local.client, heads));
        await makeTraffic(local, traffic);
        told = await local.client.getBlockNumber();
        const before = proxy.counts().eth_getLogs ?? 0;
        await eventually('logs are asked for', () => (proxy.counts().eth_getLogs ?? 0) >= before + 4);
        proxy.answer(THROUGH);
        await followed.allDeliveredOnce();
      }));
  }

  it('are delivered once and in order when the head goes back for a while', () =>
    throughProxy('older-head', async (proxy, followed) => {
      await makeTraffic(local, { tokens: 2, rounds: 2 });
      await followed.settled();
      const earlier = (await local.client.getBlockNumber()) - 4;
      const old = { toldHead: () => earlier, lastBlock: () => earlier, lastLogs: () => earlier };
      proxy.answer(laggingNode(local.client, old));
      await makeTraffic(local, { tokens: 1, rounds: 1 });
      const before = proxy.calls.length;
      await eventually('the old head was seen', () => proxy.calls.length >= before + 6);
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
      expect(followed.logged('chain reorganised')).to.deep.equal([]);
      expect((await healthOf(followed.service.url)).status).to.equal('ok');
    }));

  for (const [name, keep] of [
    ['half of the logs are missing', (logs: unknown[]) => logs.slice(0, Math.floor(logs.length / 2))],
    ['all logs are missing', () => []],
  ] as const) {
    it(`are delivered once and in order when ${name} from one answer`, () =>
      throughProxy(name, async (proxy, followed) => {
        // After each mint another answer with logs is spoilt, so that every question gets a wrong answer
        // once.
        for (let spoilt = 1; spoilt <= 4; spoilt++) {
          const spoiler = spoilAnswer(spoilt, keep);
          proxy.answer(spoiler.answerer);
          await mintDirectly(local, await local.account(1));
          await followed.allDeliveredOnce();
          expect(spoiler.spoilt(), `answer ${spoilt} was changed`).to.equal(true);
        }
      }));
  }

  it('are delivered once and in order when the node is away for ten seconds', () =>
    throughProxy('away', async (proxy, followed) => {
      await mintDirectly(local, await local.account(1));
      await followed.settled();
      await proxy.refuse();
      await Promise.all([sleep(10_000), makeTraffic(local, { tokens: 2, rounds: 2 })]);
      await proxy.accept();
      await followed.allDeliveredOnce();
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
      try {
        await whileFollowing(local, { name: `broken-${broken}`, settings, config }, async (followed) => {
          const [ofBroken, ofOther] = [broken, 1 - broken].map((index) => registries[index]?.toLowerCase());
          const announcedOf = (address?: string): number =>
            followed.accepted.filter(({ data }) => data.registryAddress === address).length;
          const stateOf = async (address?: string): Promise<string | undefined> =>
            (await healthOf(followed.service.url)).feeds.find(({ registry }) => registry === address)?.state;

          await followed.settled();
          await proxies[broken]?.refuse();
          for (const registryAddress of registries)
            await makeTraffic(local, { tokens: 2, rounds: 1, registryAddress });
          await eventually('all events of the other', () => announcedOf(ofOther) === 12);
          await eventually('it is known', async () => (await stateOf(ofBroken)) === 'failing');
          expect([await stateOf(ofOther), announcedOf(ofBroken)]).to.deep.equal(['following', 0]);
          await proxies[broken]?.accept();
          await followed.allDeliveredOnce(registries);
        });
      } finally {
        await Promise.all(proxies.map((proxy) => proxy.close()));
      }
    });
  }
});

/** Removes logs from the n-th answer that has any. */
function spoilAnswer(
  which: number,
  keep: (logs: unknown[]) => unknown[],
): { answerer: Answerer; spoilt(this: void): boolean } {
  let seen = 0;
  return {
    spoilt: () => seen >= which,
    async answerer(method, _params, forward) {
      if (method !== 'eth_getLogs') return 'none';
      const answer = await forward();
      if ('error' in answer) return answer;
      const logs = answer.result as unknown[];
      return logs.length > 0 && ++seen === which ? { result: keep(logs) } : answer;
    },
  };
}
