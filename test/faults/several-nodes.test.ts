import { expect } from 'chai';
import { codeOf } from '../../service/base/errors';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startTcpProxy } from '../helpers/processes/tcp-proxy';
import { startService } from '../helpers/processes/running-service';
import { eventually, hastenSuite } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import MINIMAL from '../fixtures/bill-of-lading-minimal.json';

const never = (): Promise<never> => new Promise(() => undefined);

interface NodesInHealth {
  confirmedBy: number;
  nodes: { url: string; state: string; reason?: string; differences: number }[];
}

async function nodesOf(followed: FollowedRegistry): Promise<NodesInHealth> {
  const [feed] = (await healthOf(followed.service.url)).feeds;
  return feed as unknown as NodesInHealth;
}

describe('two nodes', () => {
  hastenSuite(4);
  let local: LocalSetup;
  let first: RpcProxy;
  let second: RpcProxy;
  let settings: Record<string, string>;

  before(async () => {
    local = await createLocalSetup();
  });

  beforeEach(async () => {
    first = await startRpcProxy(local.node.url);
    second = await startRpcProxy(local.node.url);
    settings = { RPC_URL: `${first.url}, ${second.url}`, WALLET_PRIVATE_KEY: DEPLOYER_KEY };
  });

  /** Creates a document, and waits for the events of its mint. */
  const createOne = async (followed: FollowedRegistry): Promise<void> => {
    const [owner, holder] = [await local.account(1), await local.account(2)];
    const minted = countOf(followed, 'minted') + 1;
    const { status, text } = await create(followed.service.url, { owner, holder, remarks: '', ...MINIMAL });
    expect(status, text).to.equal(200);
    await eventually('it is announced', () => countOf(followed, 'minted') === minted);
  };

  const isAway = async (followed: FollowedRegistry, url: string): Promise<boolean> => {
    const { confirmedBy, nodes } = await nodesOf(followed);
    return confirmedBy === 1 && nodes.find((node) => node.url === url)?.state === 'away';
  };

  const untilBack = (followed: FollowedRegistry): Promise<unknown> =>
    eventually('the node is back', async () => (await nodesOf(followed)).confirmedBy === 2);

  /** Takes a node away, and gives it back. */
  const ABSENCES: { take: (node: RpcProxy) => unknown; give: (node: RpcProxy) => unknown }[] = [
    { take: (node) => node.refuse(), give: (node) => node.accept() },
    { take: (node) => node.answer(never), give: (node) => node.answer(THROUGH) },
  ];

  it('issue and deliver while one is killed or hangs, and stand still while they differ', () =>
    whileFollowing(local, { settings }, async (followed) => {
      for (const { take, give } of ABSENCES)
        for (const node of [first, second]) {
          await createOne(followed);
          await take(node);
          await createOne(followed);
          await eventually('the node is away', () => isAway(followed, node.url));
          await give(node);
          await untilBack(followed);
        }
      await followed.allDeliveredOnce();

      const { length } = followed.attempted;
      second.answer((method) => (method === 'eth_getLogs' ? { result: [] } : 'none'));
      await mintDirectly(local, await local.account(1));
      const [feed] = await eventually('the feed stands still', async () => {
        const { feeds } = await healthOf(followed.service.url);
        return feeds[0]?.code === 'NODES_DIFFER' ? feeds : undefined;
      });
      expect(feed?.reason).to.contain(first.url).and.to.contain(second.url);
      expect(followed.attempted).to.have.length(length);
      second.answer(THROUGH);
      await followed.allDeliveredOnce();
      expect(followed.attempted).to.have.length(length + EVENTS_OF_A_MINT);
    }));

  it('issue and deliver if one is over WebSocket, also while it is killed', async () => {
    await using proxy = await startTcpProxy(Number(new URL(local.node.url).port));
    const url = `ws://127.0.0.1:${proxy.port}`;
    const mixed = { ...settings, RPC_URL: `${url} ${second.url}` };
    await whileFollowing(local, { settings: mixed }, async (followed) => {
      await createOne(followed);
      proxy.refuse();
      await createOne(followed);
      await eventually('the node is away', () => isAway(followed, url));
      proxy.accept();
      await untilBack(followed);
      await second.refuse();
      await createOne(followed);
      await followed.allDeliveredOnce();
    });
  });

  it('are refused at the start if one is of another chain', async () => {
    second.answer((method) => (method === 'eth_chainId' ? { result: '0x1' } : 'none'));
    const failure = await startService({ ...local.settings, ...settings }).catch((error: unknown) => error);
    expect(codeOf(failure)).to.equal('CHAIN_ID_MISMATCH');
  });
});

function countOf({ accepted }: FollowedRegistry, type: string): number {
  return accepted.filter((event) => event.type.endsWith(`.${type}`)).length;
}
