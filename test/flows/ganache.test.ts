import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { EVENTS_OF_A_MINT } from '../helpers/chain/direct-mint';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { eventually } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import { whileFollowingThroughProxy } from '../helpers/processes/followed-registry';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';

const DOCUMENTS = 3;
const SUBMISSION = 'eth_sendRawTransaction';

describe('on ganache', () => {
  let local: LocalSetup;

  before(async () => {
    local = await createLocalSetup({ program: 'ganache' });
  });

  it('documents whose mints are in one block get one token each, and their events arrive', () =>
    whileFollowingThroughProxy(
      local,
      { settings: { WALLET_PRIVATE_KEY: DEPLOYER_KEY } },
      async (proxy, followed) => {
        const fromBlock = (await local.client.getBlockNumber()) + 1;
        const owner = await local.account(1);
        await local.client.send('miner_stop', []);
        const creating = Array.from({ length: DOCUMENTS }, () =>
          create(followed.service.url, { ...minimal, owner, holder: owner }),
        );
        await eventually('the mints are sent', () => proxy.counts()[SUBMISSION] === DOCUMENTS);
        await local.client.send('miner_start', []);
        const answers = await Promise.all(creating);
        for (const { status, text } of answers) expect(status, text).to.equal(200);
        const block = await local.client.getBlock(fromBlock);
        expect(block?.transactions).to.have.length(DOCUMENTS);
        await followed.allDeliveredOnce();
        expect(followed.accepted).to.have.length(DOCUMENTS * EVENTS_OF_A_MINT);
        const tokenIds = answers.map(({ body }) => body.signedW3CDocument.credentialStatus.tokenId);
        expect([...(await mintedTokens(local, fromBlock)).keys()]).to.have.members(tokenIds);
        const { stdout } = await askTdocInProcess(['check'], local.settings);
        expect(stdout).to.contain('counts logs within each transaction of block');
      },
    ));
});
