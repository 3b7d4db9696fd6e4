import { expect } from 'chai';
import { eventually } from '../helpers/eventually';
import { ENGINES, newState, type State } from '../helpers/database/engines';
import type { FollowedRegistry } from '../helpers/processes/followed-registry';
import { whileFollowingThroughProxy } from '../helpers/processes/following-through-proxy';
import type { Fork } from '../helpers/chain/forkable-chain';
import { createForkedRegistry, MINTERS, type ForkedRegistry } from '../helpers/chain/forked-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { THROUGH, type Answerer, type RpcProxy } from '../helpers/chain/rpc-proxy';

const TOKENS = 8;

for (const engine of ENGINES) {
  describe(`waiting events on ${engine}, when their blocks are replaced while the service is stopped`, () => {
    let forked: ForkedRegistry;
    let state: State | undefined;

    before(async () => {
      forked = await createForkedRegistry();
    });

    after(() => forked?.stop());

    beforeEach(async function () {
      state = await newState(engine);
      if (state === undefined) return this.skip();
    });

    afterEach(() => state?.remove());

    async function mineMints(count: number, minter: number = MINTERS[0]): Promise<void> {
      for (let left = count; left > 0; left--) await forked.mine(await forked.mint({ minter }));
    }

    /** Lets events wait, and replaces their blocks by `replacements` others while the service is stopped. */
    const replaced = (
      replacements: number,
      atRestart: Answerer,
      act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
    ): Promise<void> => {
      const following = { name: `${engine}-${replacements}`, settings: { ...state?.settings } };
      return whileFollowingThroughProxy(forked.local, following, async (proxy, followed) => {
        followed.answer(500);
        const fork: Fork = await forked.fork();
        await mineMints(TOKENS);
        await followed.caughtUp();
        await eventually('attempts', () => followed.attempted.length >= TOKENS);
        await followed.restart(async () => {
          await fork.back(1);
          await mineMints(replacements, MINTERS[1]);
          proxy.answer(atRestart);
          followed.answer(200);
        });
        await act(proxy, followed);
      });
    };

    it('are not sent before the blocks read are compared with the chain', () =>
      replaced(TOKENS + 1, THROUGH, (_proxy, followed) => followed.allDeliveredOnce()));

    it('are held, and the feed is not "following", while the node lacks the newest block read', async () => {
      const head = (await forked.local.client.getBlockNumber()) + TOKENS;
      const lacking: Answerer = async (method, params, forward) => {
        const isNewest = method === 'eth_getBlockByNumber' && Number(params[0]) >= head;
        return isNewest ? { result: null } : forward();
      };
      await replaced(TOKENS, lacking, async (proxy, followed) => {
        const [line] = await eventually('it is said', () => {
          const lines = followed.logged(
            'the node lacks blocks that were read before: deliveries are held until it has them',
          );
          return lines.length > 0 ? lines : undefined;
        });
        expect(line).to.include({ level: 'warn' });
        expect((await healthOf(followed.service.url)).feeds[0]?.state).not.to.equal('following');
        expect(followed.accepted).to.deep.equal([]);
        proxy.answer(THROUGH);
        await eventually('it is noticed', () => followed.logged('chain reorganised').length > 0);
        await followed.allDeliveredOnce();
      });
    });
  });
}
