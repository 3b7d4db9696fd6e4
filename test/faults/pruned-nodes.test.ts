import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { connectNode } from '../../service/chain/chain';
import { createRegistryFinder } from '../../service/registry/registry-contracts';
import { restorePurged } from '../../service/watcher/follow-registry';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { localSetupOfSuite } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { prunedBelow, type Absence } from '../helpers/chain/node-limits';
import { startRpcProxy, THROUGH, type Answerer, type RpcAnswer } from '../helpers/chain/rpc-proxy';
import { asking } from '../helpers/chain/unusual-logs';
import { newState, openState, type State } from '../helpers/database/engines';
import { errorOf } from '../helpers/error-of';
import { create } from '../helpers/processes/create-call';
import {
  whileFollowing,
  whileFollowingThroughProxy,
  type FollowedRegistry,
} from '../helpers/processes/followed-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { VirtualTime } from '../helpers/virtual-time';

/** How nodes say that they do not have a block any more, or never had it. */
const ANSWERS: Record<string, RpcAnswer> = {
  null: { result: null },
  'code 4444': { error: { code: 4444, message: 'pruned history unavailable' } },
  'a missing trie node': { error: { code: -32000, message: 'missing trie node 0xd7f8 (path ) <nil>' } },
  'a header not found': { error: { code: -32000, message: 'header not found' } },
  'words of its own': { error: { code: -32000, message: 'the archive is not part of your plan' } },
  'a pruned block': { error: { code: -32001, message: 'Block has been pruned' } },
};

describe('a node without block 0', () => {
  const local = localSetupOfSuite();
  let firstBlock: number;

  /** Answers like a node that has the blocks from `oldest` on. */
  const prunedTo = (oldest: number, absence: RpcAnswer = { result: null }): Answerer =>
    prunedBelow(oldest, { blocks: absence, logs: absence, receipts: absence }, asking(local.node.url));

  before(async () => {
    const client = connectNode(local.node.url, {}, systemTime);
    firstBlock = (await createRegistryFinder(client, local.registryAddress)()).genesisBlock;
    // A node that is behind may lack newer blocks than these.
    await mineBlocks(local, 130);
    client.close();
  });

  /** Mints, and waits for the events. */
  async function mint({ accepted, until }: FollowedRegistry): Promise<void> {
    const before = accepted.length;
    await mintDirectly(local, await local.account(1));
    await until('its events', () => accepted.length === before + EVENTS_OF_A_MINT);
  }

  const issuing = () => ({ WALLET_PRIVATE_KEY: local.settings.WALLET_PRIVATE_KEY ?? '' });

  for (const [name, absence] of Object.entries(ANSWERS)) {
    it(`is read with, if it answers ${name}`, () =>
      whileFollowingThroughProxy(local, { answerer: prunedTo(1, absence) }, async (_, followed) => {
        await mint(followed);
        await followed.allDeliveredOnce();
      }));

    it(`is one of two, and answers ${name}`, async () => {
      await using one = await startRpcProxy(local.node.url, prunedTo(1, absence));
      await whileFollowing(
        local,
        { settings: { RPC_URL: `${one.url} ${local.node.url}` } },
        async (followed) => {
          await mint(followed);
          await followed.allDeliveredOnce();
        },
      );
    });
  }

  it('is issued with, also as one of two', async () => {
    await using one = await startRpcProxy(local.node.url, prunedTo(1));
    for (const urls of [one.url, `${one.url} ${local.node.url}`])
      await whileFollowing(local, { settings: { ...issuing(), RPC_URL: urls } }, async (followed) => {
        const owner = await local.account(1);
        const { status } = await create(followed.service.url, { ...minimal, owner, holder: owner });
        expect(status).to.equal(200);
        await followed.allDeliveredOnce();
        expect(followed.accepted).to.have.length(EVENTS_OF_A_MINT);
      });
  });

  it('goes on where another one ended, and lets another one go on', () =>
    whileFollowingThroughProxy(local, {}, async (proxy, followed) => {
      const answerers = [
        prunedTo(1),
        prunedTo(firstBlock + 1),
        prunedTo(1),
        THROUGH,
        prunedTo(firstBlock + 1),
      ];
      await mint(followed);
      for (const answerer of answerers) {
        await followed.restart(async () => proxy.answer(answerer));
        await mint(followed);
      }
      await followed.allDeliveredOnce();
    }));

  it('begins a feed, which a node with block 0 continues', async () => {
    const fromBlock = await local.client.getBlockNumber();
    await whileFollowingThroughProxy(
      local,
      { answerer: prunedTo(firstBlock + 1), fromBlock },
      async (proxy, followed) => {
        await mint(followed);
        for (const answerer of [prunedTo(1), THROUGH]) {
          await followed.restart(async () => proxy.answer(answerer));
          await mintDirectly(local, await local.account(1));
          await followed.allDeliveredOnce();
        }
      },
    );
  });

  it('restores no purged events, and says so, if it answers with no logs where it removed them', async () => {
    const time = VirtualTime.ofRequests();
    const absence: Absence = { blocks: undefined, logs: { result: [] }, receipts: { result: null } };
    await using proxy = await startRpcProxy(
      local.node.url,
      prunedBelow(firstBlock + 1, absence, asking(local.node.url)),
    );
    await using state = await newState('SQLite');
    await using database = await openState(state as State);
    const client = connectNode(proxy.url, {}, time);
    const { registryAddress } = local;
    const identity = { chainId: 31337, chainKey: 'hardhat', registryAddress };
    const purged = { client, registryAddress, identity, database, time, startBlock: undefined };
    const blocks = { fromBlock: 0, upTo: firstBlock + 1, signal: new AbortController().signal };
    const restored = time.settled(restorePurged(purged, 1, blocks));
    expect(await errorOf(restored)).to.include({ code: 'LOGS_PRUNED' });
    client.close();
  });

  it('issues nothing, and says so, if it lacks the first block to read', () =>
    whileFollowingThroughProxy(
      local,
      { answerer: prunedTo(firstBlock + 1), settings: { ...issuing(), START_BLOCK: '' }, fromBlock: 0 },
      async (proxy, followed) => {
        const { service, accepted, until, restart, allDeliveredOnce } = followed;
        const owner = await local.account(1);
        const body = { ...minimal, owner, holder: owner };
        const { status, errorCode } = await create(service.url, body);
        expect([status, errorCode]).to.deep.equal([500, 'LOGS_PRUNED']);
        const feed = await until('GET /health says so', async () => {
          const [feed] = (await healthOf(service.url)).feeds;
          return feed?.state === 'stopped' ? feed : undefined;
        });
        expect(feed.code).to.equal('LOGS_PRUNED');
        expect(feed.reason)
          .to.contain(`no logs before block ${firstBlock + 1}`)
          .and.contain(`block ${firstBlock} is to be read`)
          .and.contain('START_BLOCK');
        expect(accepted).to.have.length(0);
        await restart(async () => proxy.answer(THROUGH));
        expect((await create(followed.service.url, body)).status).to.equal(200);
        await allDeliveredOnce();
      },
    ));
});
