import { expect } from 'chai';
import { mintDirectly, transferHolder, type MintedToken } from '../helpers/chain/direct-mint';
import { localSetupOfSuite } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { BLOOMS, both, logsByHash, withBloom } from '../helpers/chain/node-limits';
import { startRpcProxy, THROUGH, type Answerer, type RpcAnswer } from '../helpers/chain/rpc-proxy';
import {
  whileFollowing,
  whileFollowingThroughProxy,
  type FollowedRegistry,
} from '../helpers/processes/followed-registry';

/** Blooms of nodes. Undefined: the right ones. */
const GIVEN_BLOOMS: Record<string, string | undefined> = { right: undefined, ...BLOOMS };

const hashIn = ([filter]: readonly unknown[]): string | undefined =>
  (filter as { blockHash?: string } | undefined)?.blockHash;

const UNKNOWN_FIELD: RpcAnswer = { error: { code: -32602, message: 'unknown field blockHash' } };

/** Answers a request for the logs of a block's hash with none, or with an error. */
const withoutLogsByHash = (bloom: string | undefined, answer: RpcAnswer = { result: [] }): Answerer =>
  both(logsByHash(answer), bloom === undefined ? THROUGH : withBloom(bloom));

describe('the logs of a block that is read alone', () => {
  const local = localSetupOfSuite();
  let token: MintedToken;
  let [holder, other] = ['', ''];
  before(async () => {
    [holder, other] = [await local.account(1), await local.account(2)];
    token = await mintDirectly(local, holder);
  });

  /** Makes a block with a log of an escrow alone, one of a mint, and one without logs. */
  async function expectAll(followed: FollowedRegistry): Promise<void> {
    await followed.caughtUp();
    await transferHolder(local, token, { from: holder, to: other });
    [holder, other] = [other, holder];
    await followed.allDeliveredOnce();
    await mintDirectly(local, holder);
    await followed.allDeliveredOnce();
    await mineBlocks(local, 1);
    await followed.allDeliveredOnce();
  }

  for (const [name, bloom] of Object.entries(GIVEN_BLOOMS)) {
    it(`are found by number if the node gives none by hash, and a bloom that is ${name}`, () =>
      whileFollowingThroughProxy(local, { answerer: withoutLogsByHash(bloom) }, (_, followed) =>
        expectAll(followed),
      ));

    it(`are found by number if two nodes give none by hash, and a bloom that is ${name}`, async () => {
      await using one = await startRpcProxy(local.node.url, withoutLogsByHash(bloom));
      await using two = await startRpcProxy(local.node.url, withoutLogsByHash(bloom));
      await whileFollowing(local, { settings: { RPC_URL: `${one.url} ${two.url}` } }, expectAll);
    });
  }

  it('are found by number, without a failure, if the node knows no logs of a hash', () => {
    const answerer = withoutLogsByHash(undefined, UNKNOWN_FIELD);
    return whileFollowingThroughProxy(local, { answerer }, async (proxy, followed) => {
      await expectAll(followed);
      // Else the block would be read from its receipts.
      expect(proxy.requests.map(({ method }) => method)).not.to.include('eth_getBlockByHash');
    });
  });

  it('cost no call more on a busy chain, whose blooms are full, if the node refuses unknown blocks', () =>
    whileFollowingThroughProxy(local, { answerer: withBloom(BLOOMS.full) }, async (proxy, followed) => {
      await expectAll(followed);
      const before = proxy.requests.length;
      for (let block = 0; block < 3; block++) {
        await mineBlocks(local, 1);
        await followed.caughtUp();
      }
      const asked = proxy.requests.slice(before);
      const hashes = asked.flatMap(({ method, params }) => (method === 'eth_getLogs' ? hashIn(params) : []));
      expect(new Set(hashes).size).to.equal(3);
      expect(hashes).to.have.length(3 * 4);
      expect(asked.map(({ method }) => method)).not.to.include('eth_getBlockByHash');
    }));
});
