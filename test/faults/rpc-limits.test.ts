import { expect } from 'chai';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { whileFollowingThroughProxy, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { healthOf } from '../helpers/processes/health-and-metrics';
import {
  THROUGH,
  type Answerer,
  type HttpAnswer,
  type RpcCall,
  type RpcProxy,
} from '../helpers/chain/rpc-proxy';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

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
