import { expect } from 'chai';
import { ConfigurationError } from '../../service/base/errors';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { EVENTS_OF_A_MINT } from '../helpers/chain/direct-mint';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { eventually } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService } from '../helpers/processes/running-service';

// Most tests run on Hardhat's node. These show that issuing and delivering work with another node, and follow
// its own `finalized` and `safe`.
describe('on anvil', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup({ program: 'anvil' });
  });

  const issuing = (
    CONFIRMATIONS: string,
    act: (followed: FollowedRegistry) => Promise<void>,
  ): Promise<void> =>
    whileFollowing(local, { settings: { WALLET_PRIVATE_KEY: DEPLOYER_KEY, CONFIRMATIONS } }, act);

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
    issuing('0', async (followed) => {
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const tokenIds = await issue(followed, 8);
      await followed.allDeliveredOnce();
      expect(followed.accepted).to.have.length(8 * EVENTS_OF_A_MINT);
      expect([...(await mintedTokens(local, fromBlock)).keys()]).to.have.members(tokenIds);
    }));

  it('a mint is made again when a reorganisation takes its block', () =>
    issuing('3', async (followed) => {
      const snapshot: unknown = await local.client.send('evm_snapshot', []);
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const tokenIds = await issue(followed, 1);
      expect(await local.client.send('evm_revert', [snapshot])).to.equal(true);
      await mineBlocks(local, 1);
      const minted = () => mintedTokens(local, fromBlock);
      await eventually('the token exists again', async () => (await minted()).size === 1);
      await mineBlocks(local, 3);
      await followed.allDeliveredOnce();
      expect([...(await minted()).keys()]).to.deep.equal(tokenIds);
    }));

  it('with CONFIRMATIONS=finalized events arrive, and mints are final, once the chain says so', () =>
    issuing('finalized', async (followed) => {
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
    }));

  it('the service does not start at a node without the tag; the error names the number', async () => {
    await using proxy = await startRpcProxy(local.node.url, (_method, [block], forward) =>
      block === 'safe' ? forward(['unknown', false]) : 'none',
    );
    const settings = { ...local.settings, RPC_URL: proxy.url, CONFIRMATIONS: 'safe' };
    const error: unknown = await startService(settings).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(ConfigurationError).with.property('code', 'FINALITY_UNSUPPORTED');
    expect(error).to.have.property('message').that.contains('0 (the default of localhost)');
  });
});
