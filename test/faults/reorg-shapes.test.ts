import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { DEPLOYER_KEY } from '../helpers/chain/local-setup';
import { eventually } from '../helpers/eventually';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import type { Fork, SignedCall } from '../helpers/chain/forkable-chain';
import {
  createForkedRegistry,
  eventsOf,
  MINTERS,
  type ForkedRegistry,
} from '../helpers/chain/forked-registry';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startRpcProxy, type Fault } from '../helpers/chain/rpc-proxy';

const ORPHANED = 'etr_orphaned_delivered_events';

describe('a reorganisation', () => {
  let forked: ForkedRegistry;

  before(async () => {
    forked = await createForkedRegistry();
  });

  after(() => forked?.stop());

  const following = (
    name: string,
    settings: Record<string, string>,
    act: (followed: FollowedRegistry) => Promise<void>,
  ): Promise<void> => whileFollowing(forked.local, { name, settings }, act);

  const reorganised = (followed: FollowedRegistry, times = 1) =>
    eventually('the reorganisation is noticed', () => followed.logged('chain reorganised')[times - 1]);

  const otherMint = (): Promise<SignedCall> => forked.mint({ minter: MINTERS[1] });

  /** Mines blocks with one call each. */
  async function mineEach(calls: readonly (() => Promise<SignedCall>)[]): Promise<SignedCall[]> {
    const mined: SignedCall[] = [];
    for (const call of calls) {
      const signed = await call();
      await forked.mine(signed);
      mined.push(signed);
    }
    return mined;
  }

  /** Mines a block with this call alone and gives the block's hash. */
  async function hashOfBlockWith(call: SignedCall): Promise<string | null | undefined> {
    return (await forked.local.client.getBlock(await forked.mine(call)))?.hash;
  }

  /** Replaces the blocks on top of the fork by more blocks than the tests put there. */
  async function otherBranch(fork: Fork): Promise<SignedCall[]> {
    await fork.back(1);
    return mineEach([otherMint, forked.nominate, otherMint, forked.nominate]);
  }

  it('is noticed at the start when it happened while the service was stopped', () =>
    following('stopped', {}, async (followed) => {
      await forked.mine();
      await followed.caughtUp();
      const fork = await forked.fork();
      await mineEach([forked.mint, forked.nominate]);
      await followed.allDeliveredOnce();
      const delivered = followed.accepted.splice(0);
      followed.answer(500);
      const [undelivered] = await mineEach([forked.mint]);
      await eventually('an attempt', () => followed.attempted.length > delivered.length);

      await followed.restart(async () => {
        await fork.back(1);
        await mineEach([otherMint, forked.nominate, otherMint]);
      });
      // The attempted event counts too: the receiver may have taken it.
      expect(await reorganised(followed)).to.include({ withdrawn: 5, orphaned: 7 });
      followed.answer(200);
      await followed.allDeliveredOnce();
      expect(eventsOf(undelivered as SignedCall, followed.accepted)).to.deep.equal([]);
      expect(await metricOf(followed.service.url, ORPHANED)).to.equal(6);
    }));

  it('is followed when it replaces all blocks ever read, also after a restart', () =>
    following('from-the-first', {}, async (followed) => {
      const fork = await forked.fork();
      await mineEach([forked.mint]);
      await followed.allDeliveredOnce();
      followed.accepted.splice(0);
      await followed.restart(async () => undefined);
      await followed.caughtUp();
      await fork.back(1);
      await mineEach([otherMint, forked.nominate]);
      await followed.allDeliveredOnce();
    }));

  it('replaces the events of several blocks', () =>
    following('deep', {}, async (followed) => {
      const fork = await forked.fork();
      const first = Array.from({ length: 6 }, () => forked.mint);
      await mineEach([...first, forked.nominate, forked.nominate]);
      await followed.allDeliveredOnce();
      followed.accepted.splice(0);

      await fork.back(1);
      await mineEach([otherMint, forked.nominate, ...Array.from({ length: 8 }, () => otherMint)]);
      expect(await reorganised(followed)).to.include({ withdrawn: 0, orphaned: 32 });
      await followed.allDeliveredOnce();
    }));

  it('is followed to a branch that is shorter at first', () =>
    following('shorter', {}, async (followed) => {
      const fork = await forked.fork();
      await mineEach([forked.mint, forked.nominate, forked.nominate]);
      await followed.allDeliveredOnce();
      followed.accepted.splice(0);

      await fork.back(1);
      await mineEach([otherMint]);
      await reorganised(followed);
      await followed.allDeliveredOnce();
      await mineEach([forked.nominate, forked.nominate, forked.nominate]);
      await followed.allDeliveredOnce();
    }));

  it('delivers nothing twice when the first branch comes back', () =>
    following('back', {}, async (followed) => {
      const fork = await forked.fork();
      const first = await forked.mint();
      const hash = await hashOfBlockWith(first);
      await followed.allDeliveredOnce();

      await fork.back(1);
      const [second] = await mineEach([otherMint]);
      await forked.mine();
      await reorganised(followed);
      await eventually(
        'the second branch',
        () => eventsOf(second as SignedCall, followed.accepted).length === 5,
      );

      await fork.back(0);
      expect(await hashOfBlockWith(first)).to.equal(hash);
      await mineEach([forked.nominate, forked.nominate]);
      await reorganised(followed, 2);
      await followed.settled();
      expect(eventsOf(first, followed.accepted)).to.have.length(5);
      expect(eventsOf(second as SignedCall, followed.accepted)).to.have.length(5);
      followed.accepted.splice(0, 10);
      expect(followed.accepted.map(({ type }) => type.split('.').at(-1))).to.deep.equal([
        'nomination',
        'nomination',
      ]);
    }));

  it('delivers the last branch when it comes right after another', () =>
    following('twice', {}, async (followed) => {
      const fork = await forked.fork();
      await mineEach([forked.mint]);
      await followed.allDeliveredOnce();
      followed.accepted.splice(0);
      followed.answer(500);

      await fork.back(1);
      await mineEach([forked.mint, forked.nominate]);
      await fork.back(2);
      await mineEach([otherMint, forked.nominate, forked.nominate]);
      await followed.caughtUp();
      followed.answer(200);
      await followed.allDeliveredOnce();
      expect(await metricOf(followed.service.url, ORPHANED)).to.equal(5);
    }));

  // The watcher asks for the head, for the block, four times for its logs, and for the receipt; then for the
  // next head, which is the next block, and its logs.
  for (const question of [2, 3, 4, 6, 7, 8, 9]) {
    it(`mixes no branches when it comes before question ${question} about a range`, async () => {
      const proxy = await startRpcProxy(forked.local.node.url);
      try {
        await following(`between-${question}`, { RPC_URL: proxy.url }, async (followed) => {
          followed.answer(500);
          await forked.mine();
          await followed.caughtUp();
          const fork = await forked.fork();
          await mineEach([forked.nominate]);
          await followed.caughtUp();
          let asked = 0;
          let replaced: Promise<unknown> | undefined;
          proxy.answer(async (_, [block]): Promise<Fault> => {
            await mined;
            // Counting begins with the question that shows the watcher a new block.
            if (asked > 0 || block === 'latest') asked++;
            if (asked === question) replaced ??= otherBranch(fork);
            await replaced;
            return 'none';
          });
          const mined = mineEach([forked.mint]).then(() => forked.mine());
          await eventually('the blocks are replaced', () => replaced);
          await followed.caughtUp();
          followed.answer(200);
          await followed.allDeliveredOnce();
        });
      } finally {
        await proxy.close();
      }
    });
  }

  it('is not noticed above the confirmed blocks', () =>
    following('confirmed', { CONFIRMATIONS: '3' }, async (followed) => {
      const fork = await forked.fork();
      await mineEach([forked.mint, forked.nominate]);
      await forked.mine();
      await followed.settled();
      await fork.back(1);
      await mineEach([otherMint, forked.nominate]);
      for (let block = 0; block < 3; block++) await forked.mine();
      await followed.allDeliveredOnce();
      expect(followed.logged('chain reorganised')).to.deep.equal([]);
      expect(await metricOf(followed.service.url, ORPHANED)).to.equal(0);
    }));

  it('stops only the feed, and says so, when it is deeper than FINALITY_DEPTH', () =>
    following('too-deep', { FINALITY_DEPTH: '3', WALLET_PRIVATE_KEY: DEPLOYER_KEY }, async (followed) => {
      for (let block = 0; block < 3; block++) await forked.mine();
      const fork = await forked.fork();
      await mineEach([forked.mint]);
      for (let block = 0; block < 5; block++) await forked.mine();
      await followed.allDeliveredOnce();

      await fork.back(1);
      await mineEach([otherMint]);
      for (let block = 0; block < 6; block++) await forked.mine();
      const line = await eventually('it stops', () =>
        followed.service.log.find(({ level }) => level === 'fatal'),
      );
      expect(line).to.include({ code: 'CHAIN_REORGANISED' });
      const health = await healthOf(followed.service.url);
      expect(health).to.include({ httpStatus: 503, status: 'failing' });
      expect(health.feeds[0]).to.include({ state: 'stopped', code: 'CHAIN_REORGANISED' });

      await forked.release();
      const owner = await forked.local.account(1);
      const { status } = await create(followed.service.url, { ...minimal, owner, holder: owner });
      expect(status).to.equal(200);
      expect(followed.accepted).to.have.length(5);
    }));
});
