import { expect } from 'chai';
import { findNetwork, type Network } from '../../service/chain/networks';
import { pausesOf } from '../../service/config/followed-registries';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { mintTogether } from '../helpers/chain/direct-mint';
import { CREDITS_PER_DAY, creditsOf } from '../helpers/chain/metered-provider';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** As many as the gas limit of a block allows. */
const TOKENS = 25;
const DAY_MS = 86_400_000;

describe('the cost of reading the chain', () => {
  let local: LocalSetup;
  let proxy: RpcProxy;
  let creditsOfALook = 0;

  before(async () => {
    local = await createLocalSetup();
    proxy = await startRpcProxy(local.node.url);
  });

  /** Counts the calls, by method, that read a range of this many blocks with one event. */
  async function costOf(
    followed: FollowedRegistry,
    blocks: number,
    makeEvent: () => Promise<unknown>,
  ): Promise<Record<string, number>> {
    await followed.caughtUp();
    const head = await local.client.getBlockNumber();
    let revealedAt: number | undefined;
    let hidden = true;
    // The service is told of all blocks at the same time; otherwise it would read several ranges.
    proxy.answer((_, [block, ...rest], forward) => {
      if (block !== 'latest') return 'none';
      if (hidden) return forward([`0x${head.toString(16)}`, ...rest]);
      revealedAt ??= proxy.calls.length;
      return 'none';
    });
    await mineBlocks(local, blocks - 1);
    await makeEvent();
    hidden = false;
    await followed.caughtUp();
    return followed.until('it looks for more', () => {
      const calls = proxy.requests.slice(revealedAt);
      const end = calls.findIndex(({ params }) => params[0] === 'latest');
      return end < 0 ? undefined : countEach(calls.slice(0, end).map(({ method }) => method));
    });
  }

  it(`is the same with no tokens and with ${TOKENS}`, async () => {
    const settings = { RPC_URL: proxy.url };
    const registry = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    const pause = () => registry.pause('0x').then((sent) => sent.wait());
    const unpause = () => registry.unpause('0x').then((sent) => sent.wait());
    await whileFollowing(local, { settings }, async (followed) => {
      const none = [await costOf(followed, 1, pause), await costOf(followed, 50, unpause)];
      await mintTogether(local, await local.account(1), TOKENS);
      const many = [await costOf(followed, 1, pause), await costOf(followed, 50, unpause)];
      expect(many).to.deep.equal(none);
      expect(Object.keys(many[0] ?? {})).to.include('eth_getLogs');
      // Before the next pause, the service also asks for the head and checks the last block it read.
      const look = {
        ...many[1],
        eth_getBlockByNumber: (many[1]?.eth_getBlockByNumber ?? 0) + 2,
      };
      creditsOfALook = creditsOf(look);
    });
  });

  it('is below the daily credits of a free plan for a registry without new events', () => {
    const pause = pausesOf(findNetwork('amoy') as Network, undefined).longest;
    expect(creditsOfALook * (DAY_MS / pause)).to.be.within(1, CREDITS_PER_DAY * 0.9);
  });

  /** The calls at all nodes that read some blocks at once. */
  async function callsFor(
    nodes: readonly RpcProxy[],
    followed: FollowedRegistry,
    mine: () => Promise<unknown>,
  ): Promise<number> {
    await followed.caughtUp();
    const head = await local.client.getBlockNumber();
    const begun = nodes.map(({ calls }) => calls.length);
    let hidden = true;
    for (const node of nodes)
      node.answer((_, [block, ...rest], forward) =>
        block === 'latest' && hidden ? forward([`0x${head.toString(16)}`, ...rest]) : 'none',
      );
    await mine();
    hidden = false;
    await followed.caughtUp();
    // A look begins with the newest block. One of them reads logs.
    const looks = nodes.map(({ requests }, index) => {
      const made = requests.slice(begun[index]);
      const logs = made.findIndex(({ method }) => method === 'eth_getLogs');
      const first = made.slice(0, logs).findLastIndex(({ params }) => params[0] === 'latest');
      const next = made.findIndex(({ params }, at) => at > logs && params[0] === 'latest');
      return made.slice(first, next < 0 ? undefined : next).length;
    });
    return looks.reduce((sum, calls) => sum + calls, 0);
  }

  for (const CONFIRMATIONS of ['0', '12'])
    it(`is higher by a quarter at most with two nodes and ${CONFIRMATIONS} confirmations`, async () => {
      await using second = await startRpcProxy(local.node.url);
      const registry = TradeTrustTokenStandard__factory.connect(
        local.registryAddress,
        await local.client.getSigner(0),
      );
      let isPaused = await registry.paused();
      const change = async () => {
        await (isPaused ? registry.unpause('0x') : registry.pause('0x')).then((sent) => sent.wait());
        isPaused = !isPaused;
        await mineBlocks(local, Number(CONFIRMATIONS));
      };
      const costs = async (nodes: readonly RpcProxy[]): Promise<number[]> => {
        const settings = { RPC_URL: nodes.map(({ url }) => url).join(' '), CONFIRMATIONS };
        const found: number[] = [];
        await whileFollowing(local, { settings }, async (followed) => {
          await mineBlocks(local, Number(CONFIRMATIONS));
          // The service sees each block as the newest, as on a chain that it follows.
          for (let block = 0; block <= Number(CONFIRMATIONS); block++) {
            await mineBlocks(local, 1);
            await followed.caughtUp();
          }
          for (const mine of [() => mineBlocks(local, 1), () => mineBlocks(local, 50), change])
            found.push(await callsFor(nodes, followed, mine));
        });
        return found;
      };
      proxy.answer(THROUGH);
      const one = await costs([proxy]);
      const [block = 0, blocks = 0, event = 0] = await costs([proxy, second]);
      expect(block).to.be.at.most((one[0] ?? 0) * 1.25);
      expect(blocks).to.be.at.most((one[1] ?? 0) * 1.25);
      // Without confirmations, the second receipt is more than a quarter of the calls of one block.
      const receipt = CONFIRMATIONS === '0' ? 1 : 0;
      expect(event).to.be.at.most((one[2] ?? 0) * 1.25 + receipt);
    });
});

function countEach(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
