import { expect } from 'chai';
import { toQuantity } from 'ethers';
import { ConfigurationError } from '../../service/base/errors';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { EVENTS_OF_A_MINT } from '../helpers/chain/direct-mint';
import { createForkedRegistry, MINTERS, type ForkedRegistry } from '../helpers/chain/forked-registry';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { startRpcProxy, THROUGH } from '../helpers/chain/rpc-proxy';
import { makeTraffic } from '../helpers/chain/traffic';
import { eventually } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import {
  whileFollowing,
  whileFollowingThroughProxy,
  type FollowedRegistry,
} from '../helpers/processes/followed-registry';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService } from '../helpers/processes/running-service';

/** A log of JSON-RPC. */
type Log = Record<'address' | 'blockHash' | 'data' | 'transactionHash', string>;

// Most tests run on Hardhat's node. These show that what they hold is not a peculiarity of that node.
describe('on anvil', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
  });

  const issuing = (
    act: (followed: FollowedRegistry) => Promise<void>,
    settings: Record<string, string> = {},
  ): Promise<void> =>
    whileFollowing(local, { settings: { WALLET_PRIVATE_KEY: DEPLOYER_KEY, ...settings } }, act);

  /** Issues documents at the same time, and returns the ids of their tokens. */
  async function issue({ service }: FollowedRegistry, documents: number): Promise<string[]> {
    const owner = await local.account(1);
    const answers = await Promise.all(
      Array.from({ length: documents }, () => create(service.url, { ...minimal, owner, holder: owner })),
    );
    for (const { status, text } of answers) expect(status, text).to.equal(200);
    return answers.map(({ body }) => body.signedW3CDocument.credentialStatus.tokenId);
  }

  it('documents that are issued at the same time get one token each, and their events arrive', () =>
    issuing(async (followed) => {
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const tokenIds = await issue(followed, 8);
      await followed.allDeliveredOnce();
      expect(followed.accepted).to.have.length(8 * EVENTS_OF_A_MINT);
      expect([...(await mintedTokens(local, fromBlock)).keys()]).to.have.members(tokenIds);
    }));

  it('a mint is made again when a reorganisation takes its block', () =>
    issuing(
      async (followed) => {
        const snapshot: unknown = await local.client.send('evm_snapshot', []);
        const fromBlock = (await local.client.getBlockNumber()) + 1;
        const tokenIds = await issue(followed, 1);
        expect(await local.client.send('evm_revert', [snapshot])).to.equal(true);
        await mineBlocks(local, 1);
        await eventually(
          'the token exists again',
          async () => (await mintedTokens(local, fromBlock)).size === 1,
        );
        await mineBlocks(local, 3);
        await followed.allDeliveredOnce();
        expect([...(await mintedTokens(local, fromBlock)).keys()]).to.deep.equal(tokenIds);
      },
      { CONFIRMATIONS: '3' },
    ));

  it('events arrive once and in order although answers leave out logs, repeat them or invent some', () =>
    whileFollowingThroughProxy(local, {}, async (proxy, followed) => {
      // The first answers to each question. No other answer shows that the log of a transfer is left out.
      const lies: ((logs: Log[], first: Log) => Log[])[] = [
        (logs) => logs.slice(0, -1),
        (logs, first) => [first, ...logs],
        (logs, first) => [...logs, { ...first, transactionHash: first.blockHash }],
      ];
      const told = new Map<string, number>();
      proxy.answer(async (method, params, forward) => {
        const question = JSON.stringify(params);
        if (method !== 'eth_getLogs' || !question.includes('topics')) return 'none';
        const answer = await forward();
        const logs = 'result' in answer ? (answer.result as Log[]) : [];
        const times = told.get(question) ?? 0;
        const [[first], lie] = [logs, lies[times]];
        if (first === undefined || lie === undefined) return answer;
        told.set(question, times + 1);
        return { result: lie(logs, first) };
      });
      await makeTraffic(local, { tokens: 4, rounds: 5 });
      await followed.allDeliveredOnce();
      expect([...told.values()]).to.include(lies.length);
    }));

  it('the feed stops, by name, while every answer leaves out the same log', () =>
    whileFollowingThroughProxy(local, {}, async (proxy, followed) => {
      proxy.answer(async (method, _params, forward) => {
        if (method !== 'eth_getLogs') return 'none';
        const answer = await forward();
        return 'result' in answer ? { result: (answer.result as Log[]).slice(1) } : answer;
      });
      await makeTraffic(local, { tokens: 1, rounds: 1 });
      const codeOf = async () => (await healthOf(followed.service.url)).feeds[0]?.code;
      await eventually('GET /health names it', async () => (await codeOf()) === 'ANSWERS_DIFFER');
      expect(followed.attempted).to.deep.equal([]);
      proxy.answer(THROUGH);
      await followed.allDeliveredOnce();
    }));

  it('with CONFIRMATIONS=finalized events arrive, and mints are final, once the chain says so', () =>
    issuing(
      async (followed) => {
        await issue(followed, 1);
        const head = await local.client.getBlockNumber();
        const feed = async () => (await healthOf(followed.service.url)).feeds[0];
        await eventually('the block is seen', async () => (await feed())?.headBlock === head);
        expect(await feed()).to.include({ state: 'following', finalBlock: head - 2 });
        const mined = () => metricOf(followed.service.url, 'etr_mints{state="mined"}');
        expect(await mined()).to.equal(1);
        await mineBlocks(local, 1);
        await followed.caughtUp();
        expect(followed.attempted).to.deep.equal([]);
        await mineBlocks(local, 1);
        await followed.allDeliveredOnce();
        await eventually('the mint is final', async () => (await mined()) === 0);
      },
      { CONFIRMATIONS: 'finalized' },
    ));

  it('events wait while the chain finalizes nothing, or an answer goes back, and nothing is failing', () =>
    whileFollowingThroughProxy(
      local,
      { settings: { CONFIRMATIONS: 'finalized' } },
      async (proxy, followed) => {
        await mineBlocks(local, 2);
        await followed.caughtUp();
        let final = (await local.client.getBlock('finalized'))?.number ?? 0;
        proxy.answer((_method, [block, ...rest], forward) =>
          block === 'finalized' ? forward([toQuantity(final), ...rest]) : 'none',
        );
        await makeTraffic(local, { tokens: 2, rounds: 2 });
        final -= 2;
        const since = proxy.calls.length;
        await eventually('it is asked again', () => proxy.calls.length > since + 10);
        const { status, feeds } = await healthOf(followed.service.url);
        expect([status, feeds[0]?.state, feeds[0]?.finalBlock]).to.deep.equal(['ok', 'following', final + 2]);
        const failing = followed.service.log.filter(({ msg }) => msg?.startsWith('the chain cannot be read'));
        expect(failing).to.deep.equal([]);
        expect(followed.attempted).to.deep.equal([]);
        proxy.answer(THROUGH);
        await mineBlocks(local, 2);
        await followed.allDeliveredOnce();
      },
    ));

  it('the service does not start at a node without the tag; the error names the number', async () => {
    await using proxy = await startRpcProxy(local.node.url, (_method, [block], forward) =>
      block === 'safe' ? forward(['unknown', false]) : 'none',
    );
    const settings = { ...local.settings, RPC_URL: proxy.url, CONFIRMATIONS: 'safe' };
    const error: unknown = await startService(settings).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(ConfigurationError).with.property('code', 'FINALITY_UNSUPPORTED');
    expect(error).to.have.property('message').that.contains('0 (the default of localhost)');
  });

  describe('whose blocks a test mines', () => {
    let forked: ForkedRegistry;

    before(async () => {
      forked = await createForkedRegistry('anvil');
    });

    after(() => forked?.stop());

    it('the events of the new branch arrive after a reorganisation', () =>
      whileFollowing(forked.local, {}, async (followed) => {
        await forked.mine();
        const fork = await forked.fork();
        await forked.mine(await forked.mint());
        await forked.mine(await forked.nominate());
        await followed.allDeliveredOnce();
        const orphaned = followed.accepted.splice(0);
        await fork.back(1);
        const otherMint = (): ReturnType<ForkedRegistry['mint']> => forked.mint({ minter: MINTERS[1] });
        await forked.mine(await otherMint());
        await forked.mine(await forked.nominate());
        await forked.mine(await otherMint());
        const line = await eventually('it is noticed', () => followed.logged('chain reorganised')[0]);
        expect(line).to.include({ withdrawn: 0, orphaned: orphaned.length });
        await followed.allDeliveredOnce();
      }));

    it('a reorganisation of blocks that are not final is not noticed', () =>
      whileFollowing(forked.local, { settings: { CONFIRMATIONS: 'finalized' } }, async (followed) => {
        await forked.mine();
        const fork = await forked.fork();
        await forked.mine(await forked.mint());
        await forked.mine(await forked.nominate());
        await followed.settled();
        await fork.back(1);
        await forked.mine(await forked.mint({ minter: MINTERS[1] }));
        for (let blocks = 0; blocks < 4; blocks++) await forked.mine();
        await followed.allDeliveredOnce();
        expect(followed.logged('chain reorganised')).to.deep.equal([]);
      }));
  });
});
