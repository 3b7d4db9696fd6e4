import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { DEPLOYER_KEY } from '../helpers/chain/local-setup';
import {
  whileFollowing,
  whileFollowingThroughProxy,
  type FollowedRegistry,
} from '../helpers/processes/followed-registry';
import type { Fork, SignedCall } from '../helpers/chain/forkable-chain';
import {
  createForkedRegistry,
  eventsOf,
  MINTERS,
  type ForkedRegistry,
} from '../helpers/chain/forked-registry';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { THROUGH, type Answerer, type Fault, type RpcProxy } from '../helpers/chain/rpc-proxy';

const ORPHANED = 'etr_orphaned_delivered_events';
/** Several looks at the chain, and less than a delivery may take. */
const MANY_POLLS_MS = 8_000;

describe('a reorganisation', () => {
  let forked: ForkedRegistry;

  before(async () => {
    forked = await createForkedRegistry();
  });

  const following = (
    settings: Record<string, string>,
    act: (followed: FollowedRegistry) => Promise<void>,
  ): Promise<void> => whileFollowing(forked.local, { settings }, act);

  const reorganised = (followed: FollowedRegistry) =>
    followed.until('the reorganisation is noticed', () => followed.logged('chain reorganised')[0]);

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

  /** Replaces the blocks on top of the fork by more blocks than the tests put there. */
  async function otherBranch(fork: Fork): Promise<SignedCall[]> {
    await fork.back(1);
    return mineEach([otherMint, forked.nominate, otherMint, forked.nominate]);
  }

  it('is noticed at the start; undelivered events are withdrawn, delivered ones logged and counted', () =>
    following({}, async (followed) => {
      await forked.mine();
      await followed.caughtUp();
      const fork = await forked.fork();
      await mineEach([forked.mint, forked.nominate]);
      await followed.allDeliveredOnce();
      const delivered = followed.accepted.splice(0);
      followed.answer(500);
      const [undelivered] = await mineEach([forked.mint]);
      await followed.until('an attempt', () => followed.attempted.length > delivered.length);

      await followed.restart(async () => {
        await fork.back(1);
        await mineEach([otherMint, forked.nominate, otherMint]);
      });
      // The attempted event counts too: the receiver may have taken it.
      expect(await reorganised(followed)).to.include({ withdrawn: 5, orphaned: 7 });
      followed.answer(200);
      await followed.allDeliveredOnce();
      expect(followed.logged('event orphaned after failed attempts')).to.have.length(1);
      const orphaned = followed.logged('delivered event orphaned').map(({ eventId }) => eventId);
      expect(orphaned).to.have.members(delivered.slice(-6).map(({ id }) => id));
      expect(eventsOf(undelivered as SignedCall, followed.accepted)).to.deep.equal([]);
      expect(await metricOf(followed.service.url, ORPHANED)).to.equal(6);
    }));

  it('is followed when it replaces all blocks ever read, by fewer at first, also after a restart', () =>
    following({}, async (followed) => {
      const fork = await forked.fork();
      // So many that the search for the ancestor would begin above the new head.
      await mineEach([forked.mint, forked.nominate, forked.nominate, forked.nominate]);
      await followed.allDeliveredOnce();
      followed.accepted.splice(0);
      await followed.restart(async () => undefined);
      await followed.caughtUp();

      await fork.back(1);
      await mineEach([otherMint]);
      expect(await reorganised(followed)).to.include({ withdrawn: 0, orphaned: 8 });
      await followed.allDeliveredOnce();
      await mineEach([forked.nominate]);
      await followed.allDeliveredOnce();
    }));

  it('waits for a delivery under way to learn whether its event was delivered, and begins no other', () =>
    whileFollowingThroughProxy(forked.local, {}, async (proxy, followed) => {
      const time = followed.time!;
      let end: ((status: number) => void) | undefined;
      followed.answer(() => time.aside(new Promise((resolve) => (end = resolve))));
      const fork = await forked.fork();
      await mineEach([forked.mint]);
      await followed.until('a delivery is under way', () => end);
      await fork.back(1);
      const since = proxy.requests.length;
      await mineEach([otherMint]);
      await forked.mine();
      // Only the search for the last common block asks for block 0. The feed is held before it.
      await followed.until('the last common block is sought', () =>
        proxy.requests.slice(since).some(({ params: [block] }) => block === '0x0'),
      );
      await time.pass(MANY_POLLS_MS);
      const early = followed.logged('chain reorganised');
      followed.answer(200);
      end?.(200);
      expect(early).to.deep.equal([]);
      expect(await reorganised(followed)).to.include({ withdrawn: 4, orphaned: 1 });
      expect(followed.logged('delivered event orphaned')).to.have.length(1);
      followed.accepted.splice(0, 1);
      await followed.allDeliveredOnce();
    }));

  // The watcher asks for the head, for the block, four times for its logs, and for the receipt; then for the
  // next head, which is the next block, and its logs.
  it('mixes no branches, whichever question about a range it comes before', () =>
    whileFollowingThroughProxy(forked.local, {}, async (proxy, followed) => {
      for (const question of [2, 3, 4, 6, 7, 8, 9]) {
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
        await followed.until(`the blocks are replaced before question ${question}`, () => replaced);
        await followed.caughtUp();
        followed.answer(200);
        await followed.allDeliveredOnce();
      }
    }));

  it('is not noticed above the confirmed blocks', () =>
    following({ CONFIRMATIONS: '3' }, async (followed) => {
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
    following({ FINALITY_DEPTH: '3', WALLET_PRIVATE_KEY: DEPLOYER_KEY }, async (followed) => {
      for (let block = 0; block < 3; block++) await forked.mine();
      const fork = await forked.fork();
      await mineEach([forked.mint]);
      for (let block = 0; block < 5; block++) await forked.mine();
      await followed.allDeliveredOnce();

      await fork.back(1);
      await mineEach([otherMint]);
      for (let block = 0; block < 6; block++) await forked.mine();
      const line = await followed.until('it stops', () =>
        followed.service.log.find(({ level }) => level === 'fatal'),
      );
      expect(line).to.include({ code: 'CHAIN_REORGANISED' });
      const health = await healthOf(followed.service.url);
      expect(health).to.include({ httpStatus: 503, status: 'failing' });
      expect(health.feeds[0]).to.include({ state: 'stopped', code: 'CHAIN_REORGANISED' });

      await forked.release();
      const owner = await forked.local.account(1);
      const { status } = await create(followed.service.url, { ...minimal, owner, holder: owner });
      await forked.local.client.send('evm_setAutomine', [false]);
      expect(status).to.equal(200);
      expect(followed.accepted).to.have.length(5);
    }));

  describe('of the blocks of waiting events while the service is stopped', () => {
    const TOKENS = 8;

    /** Lets events wait, and replaces their blocks by `replacements` others while the service is stopped. */
    const replaced = (
      replacements: number,
      atRestart: Answerer,
      act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
    ): Promise<void> =>
      whileFollowingThroughProxy(forked.local, {}, async (proxy, followed) => {
        followed.answer(500);
        const fork = await forked.fork();
        await mineEach(Array.from({ length: TOKENS }, () => forked.mint));
        await followed.caughtUp();
        await followed.until('attempts', () => followed.attempted.length >= TOKENS);
        await followed.restart(async () => {
          await fork.back(1);
          await mineEach(Array.from({ length: replacements }, () => otherMint));
          proxy.answer(atRestart);
          followed.answer(200);
        });
        await act(proxy, followed);
      });

    it('is noticed before any of them is sent', () =>
      replaced(TOKENS + 1, THROUGH, (_proxy, followed) => followed.allDeliveredOnce()));

    it('holds them, the feed not "following", while the node lacks the newest block read', async () => {
      const head = (await forked.local.client.getBlockNumber()) + TOKENS;
      const lacking: Answerer = (method, [block]) =>
        method === 'eth_getBlockByNumber' && Number(block) >= head ? { result: null } : 'none';
      await replaced(TOKENS, lacking, async (proxy, followed) => {
        const held = 'the node lacks blocks that were read before: deliveries are held until it has them';
        const line = await followed.until('it is said', () => followed.logged(held)[0]);
        expect(line).to.include({ level: 'warn' });
        await followed.time!.pass(MANY_POLLS_MS);
        expect((await healthOf(followed.service.url)).feeds[0]?.state).not.to.equal('following');
        expect(followed.accepted).to.deep.equal([]);
        proxy.answer(THROUGH);
        await reorganised(followed);
        await followed.allDeliveredOnce();
      });
    });
  });
});
