import { expect } from 'chai';
import { codeOf } from '../../service/base/errors';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startTcpProxy } from '../helpers/processes/tcp-proxy';
import { startService } from '../helpers/processes/running-service';
import { VirtualTime } from '../helpers/virtual-time';
import { create } from '../helpers/processes/create-call';
import MINIMAL from '../fixtures/bill-of-lading-minimal.json';

/** Several polls, and tries to read again. */
const LONG_MS = 60_000;

interface NodesInHealth {
  confirmedBy: number;
  nodes: { url: string; state: string; reason?: string; differences: number }[];
}

async function nodesOf(followed: FollowedRegistry): Promise<NodesInHealth> {
  const [feed] = (await healthOf(followed.service.url)).feeds;
  return feed as unknown as NodesInHealth;
}

describe('two nodes', () => {
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
    settings = { RPC_URL: `${first.url}, ${second.url}` };
  });

  /** Creates a document, and waits for the events of its mint. */
  const createOne = async (followed: FollowedRegistry): Promise<void> => {
    const [owner, holder] = [await local.account(1), await local.account(2)];
    const minted = countOf(followed, 'minted') + 1;
    const { status, text } = await create(followed.service.url, { owner, holder, remarks: '', ...MINIMAL });
    expect(status, text).to.equal(200);
    await followed.until('it is announced', () => countOf(followed, 'minted') === minted);
  };

  const untilAway = (followed: FollowedRegistry, url: string): Promise<unknown> =>
    followed.until('the node is away', async () => {
      const { confirmedBy, nodes } = await nodesOf(followed);
      return confirmedBy === 1 && nodes.find((node) => node.url === url)?.state === 'away';
    });

  const untilBack = (followed: FollowedRegistry): Promise<unknown> =>
    followed.until('the node is back', async () => (await nodesOf(followed)).confirmedBy === 2);

  /** Takes a node away, and gives it back. */
  const ABSENCES: { take: (node: RpcProxy) => unknown; give: (node: RpcProxy) => unknown }[] = [
    { take: (node) => node.refuse(), give: (node) => node.accept() },
    { take: (node) => node.answer(() => 'hang'), give: (node) => node.answer(THROUGH) },
  ];

  it('deliver while one is killed or hangs, and stand still while they differ', () =>
    whileFollowing(local, { settings }, async (followed) => {
      const owner = await local.account(1);
      for (const { take, give } of ABSENCES)
        for (const node of [first, second]) {
          await mintDirectly(local, owner);
          await followed.allDeliveredOnce();
          await take(node);
          await mintDirectly(local, owner);
          await followed.allDeliveredOnce();
          await untilAway(followed, node.url);
          await give(node);
          await untilBack(followed);
        }

      const { length } = followed.attempted;
      second.answer((method) => (method === 'eth_getLogs' ? { result: [] } : 'none'));
      await mintDirectly(local, owner);
      const [feed] = await followed.until('the feed stands still', async () => {
        const { feeds } = await healthOf(followed.service.url);
        return feeds[0]?.code === 'NODES_DIFFER' ? feeds : undefined;
      });
      expect(feed?.reason).to.contain(first.url).and.to.contain(second.url);
      await followed.time?.pass(LONG_MS);
      expect(followed.attempted).to.have.length(length);
      second.answer(THROUGH);
      await followed.allDeliveredOnce();
      expect(followed.attempted).to.have.length(length + EVENTS_OF_A_MINT);
    }));

  it('issue while one hangs', () => {
    const issuing = { ...settings, WALLET_PRIVATE_KEY: DEPLOYER_KEY };
    return whileFollowing(local, { settings: issuing }, async (followed) => {
      first.answer(() => 'hang');
      await createOne(followed);
      await untilAway(followed, first.url);
      await followed.allDeliveredOnce();
    });
  });

  it('issue and deliver if one is over WebSocket, also while it is killed', async () => {
    await using proxy = await startTcpProxy(Number(new URL(local.node.url).port));
    const url = `ws://127.0.0.1:${proxy.port}`;
    const mixed = { RPC_URL: `${url} ${second.url}`, WALLET_PRIVATE_KEY: DEPLOYER_KEY };
    await whileFollowing(local, { settings: mixed }, async (followed) => {
      await createOne(followed);
      proxy.refuse();
      await createOne(followed);
      await untilAway(followed, url);
      proxy.accept();
      await untilBack(followed);
      await second.refuse();
      await createOne(followed);
      await followed.allDeliveredOnce();
    });
  });

  it('are refused at the start if one is of another chain, and not asked any more', async () => {
    const time = VirtualTime.ofRequests();
    second.answer((method) => (method === 'eth_chainId' ? { result: '0x1' } : 'none'));
    const started = startService({ ...local.settings, ...settings }, { time });
    const failure = await started.catch((error: unknown) => error);
    expect(codeOf(failure)).to.equal('CHAIN_ID_MISMATCH');
    const asked = second.calls.length;
    await time.pass(LONG_MS);
    expect(second.calls).to.have.length(asked);
  });
});

function countOf({ accepted }: FollowedRegistry, type: string): number {
  return accepted.filter((event) => event.type.endsWith(`.${type}`)).length;
}
