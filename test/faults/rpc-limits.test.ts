import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { atMostBlocks, atMostCalls, refusalOf, type RpcError, widthsOf } from '../helpers/chain/node-limits';
import { RATE_ERRORS } from '../helpers/chain/node-profiles';
import { create } from '../helpers/processes/create-call';
import {
  whileFollowing,
  whileFollowingThroughProxy,
  type FollowedRegistry,
} from '../helpers/processes/followed-registry';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { healthOf } from '../helpers/processes/health-and-metrics';
import {
  startRpcProxy,
  THROUGH,
  type Answerer,
  type HttpAnswer,
  type RpcProxy,
} from '../helpers/chain/rpc-proxy';
import { DEPLOYER_KEY, localSetupOfSuite } from '../helpers/chain/local-setup';
import { systemTime, type Time } from '../../service/base/time';
import { makeTraffic } from '../helpers/chain/traffic';
import { startSocketFront } from '../helpers/chain/socket-front';

/** test/unit/reading-ranges.test.ts has other refusals by which providers ask for fewer blocks. */
const TOO_WIDE = refusalOf(
  { code: -32602, message: 'You can make eth_getLogs requests with up to a 40 block range.' },
  400,
);
const MOST_BLOCKS = 40;
const STRETCH = 200;

/** Reached after two halvings of the first range; less than all blocks. */
const MOST_BLOCKS_AT_ALL = 500;

describe('reading many blocks from a provider with limits', () => {
  const local = localSetupOfSuite();
  let fromBlock: number;

  before(async () => {
    fromBlock = (await local.client.getBlockNumber()) + 1;
    for (let token = 0; token < 3; token++) {
      await mintDirectly(local, await local.account(1));
      await mineBlocks(local, STRETCH);
    }
  });

  /** Follows from the beginning through a proxy with a limit. */
  const readThrough = (
    answerer: Answerer,
    act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
  ): Promise<void> => whileFollowingThroughProxy(local, { answerer, fromBlock }, act);

  it('succeeds with narrower ranges when the provider refuses a wide one with status 400', () =>
    readThrough(atMostBlocks(MOST_BLOCKS, TOO_WIDE), async (proxy, followed) => {
      await followed.allDeliveredOnce();
      expect(Math.max(...widthsOf(proxy.requests))).to.be.greaterThan(MOST_BLOCKS);
      expect(await healthOf(followed.service.url)).to.include({ httpStatus: 200, status: 'ok' });
    }));

  it('succeeds with narrower ranges when the provider fails on a wide one', () => {
    const failure: HttpAnswer = { status: 500, body: 'Internal Server Error' };
    return readThrough(atMostBlocks(MOST_BLOCKS_AT_ALL, failure), async (_proxy, followed) => {
      await followed.allDeliveredOnce();
      // Each failure restarted the reading, with a narrower range.
      const failures = followed.service.log.filter(({ retryInMs }) => retryInMs !== undefined);
      expect(failures).to.have.length(2);
    });
  });

  it('asks for wider ranges when the provider allows them, also where Hardhat mined thousands at once', () =>
    readThrough(atMostBlocks(MOST_BLOCKS, TOO_WIDE), async (proxy, followed) => {
      await followed.caughtUp();
      const narrow = proxy.requests.length;
      proxy.answer(THROUGH);
      await local.client.send('hardhat_mine', ['0x1388']);
      await mintDirectly(local, await local.account(1));
      await followed.allDeliveredOnce();
      expect(Math.max(...widthsOf(proxy.requests.slice(narrow)))).to.be.greaterThan(2 * MOST_BLOCKS);
      expect(followed.logged('chain reorganised')).to.deep.equal([]);
    }));
});

const IN_OTHER_WORDS = { code: -32050, message: 'the hamster of node 17 is tired' };

describe('a node whose provider allows 20 requests a second, and refuses others in the body', () => {
  const local = localSetupOfSuite();

  /** Refuses calls that are too many, and on a slow machine too some of them. */
  const limited = (error: RpcError, time: Time = systemTime): Answerer => {
    const limit = atMostCalls(20, time, { error });
    let calls = 0;
    return (...call) => ([20, 30, 40].includes(++calls) ? { error } : limit(...call));
  };

  /** The node's URL through the proxy, by how it is reached. */
  const REACHED: [over: string, urlOf: (proxy: RpcProxy) => Promise<string> | string][] = [
    ['', ({ url }) => url],
    ['over WebSocket ', async ({ url }) => (await startSocketFront(url)).url],
  ];

  for (const [over, urlOf] of REACHED) {
    for (const [words, error] of Object.entries(RATE_ERRORS))
      it(`is read ${over}without a failure when it says so ${words}`, async () => {
        await using proxy = await startRpcProxy(local.node.url);
        const settings = { RPC_URL: await urlOf(proxy) };
        await whileFollowing(local, { settings }, async (followed) => {
          const answerer = limited(error, followed.time);
          let refused = 0;
          proxy.answer(async (...call) => {
            const answer = await answerer(...call);
            if (answer !== 'none') refused++;
            return answer;
          });
          await makeTraffic(local, { tokens: 3, rounds: 2 });
          await followed.allDeliveredOnce();
          expect(refused).to.be.greaterThan(0);
          const failures = followed.service.log.filter(({ retryInMs }) => retryInMs !== undefined);
          expect(failures).to.deep.equal([]);
        });
      });

    it(`lets documents be issued ${over}when it says so in words that are not known`, async () => {
      await using proxy = await startRpcProxy(local.node.url, limited(IN_OTHER_WORDS));
      const owner = await local.account(1);
      const settings = { WALLET_PRIVATE_KEY: DEPLOYER_KEY, RPC_URL: await urlOf(proxy) };
      await whileFollowing(local, { settings }, async (followed) => {
        const body = { ...minimal, owner, holder: owner };
        const answers = await Promise.all([1, 2, 3].map(() => create(followed.service.url, body)));
        const told = answers.map(({ status, text }) => (status === 200 ? status : text));
        expect(told).to.deep.equal([200, 200, 200]);
        await followed.allDeliveredOnce();
      });
    });
  }
});
