import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { createMeter } from '../helpers/chain/metered-provider';
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
  type RpcCall,
  type RpcProxy,
} from '../helpers/chain/rpc-proxy';
import { DEPLOYER_KEY, localSetupOfSuite } from '../helpers/chain/local-setup';
import type { Time } from '../../service/base/time';
import { makeTraffic } from '../helpers/chain/traffic';
import { startSocketFront } from '../helpers/chain/socket-front';

/** test/unit/reading-ranges.test.ts has other refusals by which providers ask for fewer blocks. */
const TOO_WIDE: HttpAnswer = {
  status: 400,
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: null,
    error: { code: -32602, message: 'You can make eth_getLogs requests with up to a 40 block range.' },
  }),
};
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
    readThrough(refuseWider(MOST_BLOCKS, TOO_WIDE), async (proxy, followed) => {
      await followed.allDeliveredOnce();
      expect(Math.max(...widthsOf(proxy.requests))).to.be.greaterThan(MOST_BLOCKS);
      expect(await healthOf(followed.service.url)).to.include({ httpStatus: 200, status: 'ok' });
    }));

  it('succeeds with narrower ranges when the provider fails on a wide one', () => {
    const failure: HttpAnswer = { status: 500, body: 'Internal Server Error' };
    return readThrough(refuseWider(MOST_BLOCKS_AT_ALL, failure), async (_proxy, followed) => {
      await followed.allDeliveredOnce();
      // Each failure restarted the reading, with a narrower range.
      const failures = followed.service.log.filter(({ retryInMs }) => retryInMs !== undefined);
      expect(failures).to.have.length(2);
    });
  });

  it('asks for wider ranges when the provider allows them, also where Hardhat mined thousands at once', () =>
    readThrough(refuseWider(MOST_BLOCKS, TOO_WIDE), async (proxy, followed) => {
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

/** Errors by which providers say with status 200 that they are asked too often. */
const RATE_ERRORS = {
  'as Alchemy does': { code: 429, message: 'Your app has exceeded its compute units per second capacity.' },
  'as QuickNode does': { code: -32007, message: '20/second request limit reached - reduce calls per second' },
  'as Infura does': {
    code: -32005,
    message: 'project ID request rate exceeded',
    data: { rate: { allowed_rps: 20, backoff_seconds: 1, current_rps: 25.5 } },
  },
  'by its code alone': { code: -32097, message: 'limit' },
  'and names the pause': { code: -32000, message: 'Request refused: try again in 1s' },
};
const IN_OTHER_WORDS = { code: -32050, message: 'the hamster of node 17 is tired' };

describe('a node whose provider allows 20 requests a second, and refuses others in the body', () => {
  const local = localSetupOfSuite();

  /** Refuses calls that are too many, and on a slow machine too some of them. */
  const limited = (error: { code: number; message: string; data?: object }, time?: Time): Answerer => {
    const meter = createMeter(20, time);
    let calls = 0;
    return () => (meter(1) && ![20, 30, 40].includes(++calls) ? 'none' : { error });
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

/** Refuses ranges of more than `mostBlocks` blocks. */
function refuseWider(mostBlocks: number, refusal: HttpAnswer): Answerer {
  return (method, params) => {
    const [width = 0] = widthsOf([{ method, params }]);
    return width > mostBlocks ? refusal : 'none';
  };
}

/** The widths, in blocks, of the ranges whose logs were asked for. */
function widthsOf(requests: readonly RpcCall[]): number[] {
  return requests.flatMap(({ method, params: [filter] }) => {
    if (method !== 'eth_getLogs') return [];
    const { fromBlock, toBlock } = filter as { fromBlock?: string; toBlock?: string };
    return fromBlock === undefined ? [] : [Number(toBlock) - Number(fromBlock) + 1];
  });
}
