import { expect } from 'chai';
import type { Block } from 'ethers';
import { EventForger__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { escrowOf, EVENTS_OF_A_MINT, mintDirectly, newTokenId } from '../helpers/chain/direct-mint';
import { whileFollowingThroughProxy, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { BOMB, THROUGH, type Answerer, type RpcAnswer, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { mineTogether, type Call } from '../helpers/chain/transactions';
import { DEPLOYER, localSetupOfSuite } from '../helpers/chain/local-setup';

const TOO_MANY_RESULTS: RpcAnswer = {
  error: { code: -32005, message: 'query returned more than 10000 results' },
};

/** Nothing is wrong with the contract that is called. */
const UNWELL: RpcAnswer = { error: { code: -32000, message: 'header not found' } };

describe('the events of a registry on a failing node', () => {
  const local = localSetupOfSuite();

  const throughProxy = (
    answerer: Answerer,
    act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
    fromBlock?: number,
  ): Promise<void> =>
    whileFollowingThroughProxy(local, { answerer, ...(fromBlock !== undefined && { fromBlock }) }, act);

  it('are delivered after contract calls failed at start, and while they fail later', () => {
    const failing: Answerer = (method) => (method === 'eth_call' ? UNWELL : 'none');
    return throughProxy(failing, async (proxy, followed) => {
      await followed.until('it was tried twice', () => pausesOf(followed).length >= 2);
      proxy.answer(THROUGH);
      await mintDirectly(local, await local.account(1));
      await followed.allDeliveredOnce();

      const before = pausesOf(followed).length;
      proxy.answer((method) => (['eth_call', 'eth_getBlockByNumber'].includes(method) ? UNWELL : 'none'));
      await followed.until('reading begins anew', () => pausesOf(followed).length > before);
      proxy.answer(failing);
      await mintDirectly(local, await local.account(1));
      await followed.allDeliveredOnce();
      expect(await stateOf(followed)).to.equal('following');
    });
  });

  it('are delivered after an outage of logs and receipts; those that waited are sent meanwhile', () =>
    throughProxy(THROUGH, async (proxy, followed) => {
      followed.answer(500);
      await mintDirectly(local, await local.account(1));
      await followed.caughtUp();
      const states = new Set<string | undefined>();
      proxy.answer(async (method) => {
        if (!['eth_getLogs', 'eth_getTransactionReceipt'].includes(method)) return 'none';
        if (pausesOf(followed).length > 0) states.add(await whyOf(followed));
        return { error: { code: -32000, message: 'internal error' } };
      });
      await mintDirectly(local, await local.account(1));
      await followed.until('reading began anew', () => pausesOf(followed).length > 1);
      followed.answer(200);
      await followed.until('what waited', () => followed.accepted.length === EVENTS_OF_A_MINT);
      await followed.until('and again', () => pausesOf(followed).length > 2);
      expect([...states]).to.have.length(1);
      expect([...states][0])
        .to.match(/^failing LOGS_REFUSED To logs the node answers with an error: internal error\. /)
        .and.contain('docs/networks.md');
      expect(pausesOf(followed).slice(0, 3)).to.deep.equal([500, 1_000, 2_000]);
      expect(followed.logged('the chain can be read again')).to.deep.equal([]);
      expect(followed.accepted).to.have.length(EVENTS_OF_A_MINT);
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
      expect(await stateOf(followed)).to.equal('following');
    }));

  for (const [words, refusal] of [
    ['and fails otherwise', { error: { code: -32000, message: 'context deadline exceeded' } }],
    ['with more than can be read', BOMB],
  ] as const) {
    const refuses = `refuses the many logs of their block, ${words}`;
    it(`are delivered without forgeries when the node ${refuses}`, async () => {
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const full = await mineAmongForgeries();
      const answerer: Answerer = (method, params) =>
        method === 'eth_getLogs' && asksFor(params[0], full) ? refusal : 'none';
      const act = async (proxy: RpcProxy, followed: FollowedRegistry): Promise<void> => {
        await followed.allDeliveredOnce();
        expect(proxy.counts().eth_getTransactionReceipt).to.equal(full.transactions.length);
        await mintDirectly(local, await local.account(1));
        await followed.allDeliveredOnce();
      };
      await throughProxy(answerer, act, fromBlock);
    });
  }

  it("wait for receipts of an old block with too many logs; the error names the node's option", async () => {
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    const full = await mineAmongForgeries();
    const refusing: Answerer = (method, params) =>
      method === 'eth_getLogs' && asksFor(params[0], full) ? TOO_MANY_RESULTS : 'none';
    const answerer: Answerer = (method, params, forward) =>
      method === 'eth_getTransactionReceipt' ? { result: null } : refusing(method, params, forward);
    await throughProxy(
      answerer,
      async (proxy, followed) => {
        await followed.until('it fails', () => pausesOf(followed).length > 0);
        const [line] = followed.service.log.filter(({ msg }) => msg?.startsWith('the chain cannot be read'));
        const { code, message } = line?.error as { code: string; message: string };
        expect(code).to.equal('RECEIPT_MISSING');
        expect(message).to.include('--history.transactions 0');
        proxy.answer(refusing);
        await followed.allDeliveredOnce();
      },
      fromBlock,
    );
  });

  /** Mines a block with a mint between forged logs of the same token. */
  async function mineAmongForgeries(): Promise<Block> {
    const [owner, stranger] = [await local.account(1), await local.account(5)];
    const forger = await new EventForger__factory(await local.client.getSigner(5)).deploy();
    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const tokenId = newTokenId();
    const forged = forger.forge.populateTransaction(registry, await escrowOf(local, tokenId), tokenId);
    const mint = registry.mint.populateTransaction(owner, owner, tokenId, '0x');
    const forgery: Call = { ...(await forged), from: stranger };
    await mineTogether(local.client, [forgery, { ...(await mint), from: DEPLOYER }, forgery]);
    const block = await local.client.getBlock('latest');
    if (block === null) throw new Error('there is no block');
    return block;
  }
});

/** The pauses, in milliseconds, after failures to read the chain. */
function pausesOf({ service }: FollowedRegistry): number[] {
  return service.log.flatMap(({ msg, retryInMs }) =>
    msg?.startsWith('the chain cannot be read') ? Number(retryInMs) : [],
  );
}

async function stateOf({ service }: FollowedRegistry): Promise<string | undefined> {
  return (await healthOf(service.url)).feeds[0]?.state;
}

/** The state with its code, and its reason, if it has a remedy. */
async function whyOf({ service }: FollowedRegistry): Promise<string | undefined> {
  const { state, code, reason, remedy } = (await healthOf(service.url)).feeds[0] ?? {};
  return remedy && `${state} ${code} ${reason}`;
}

/** Returns whether the filter covers logs of this block. */
function asksFor(filter: unknown, { hash, number }: Block): boolean {
  const { blockHash, fromBlock, toBlock } = filter as Record<string, string | undefined>;
  return blockHash === hash || (Number(fromBlock) <= number && number <= Number(toBlock));
}
