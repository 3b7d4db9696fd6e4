import { join } from 'node:path';
import { expect } from 'chai';
import { startChild } from '../../devnet/child-process';
import { PROJECT_ROOT } from '../../service/base/project-root';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { mintedTokens } from '../helpers/chain/minted-tokens';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { stopLater } from '../helpers/resources';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { DEPLOYER, localSetupOfSuite } from '../helpers/chain/local-setup';

const REQUESTS = 32;
const AT_ONCE = 30;
const BLOCK_EVERY_MS = 200;

/** Values of a body below 64 KB, which needs no permit. Signing it takes a processor ten seconds and more. */
const NUMBERS = 11_000;
const ABANDONED = 4;

describe('issuing under load', () => {
  const local = localSetupOfSuite();
  let owner: string;
  let service: ServiceProcess;

  before(async () => {
    owner = await local.account(1);
    service = await startServiceProcess(local.settings);
  });

  const issue = (): Promise<CreateAnswer> => create(service.url, { ...minimal, owner, holder: owner });

  /** Issues REQUESTS documents, AT_ONCE at the same time. */
  async function issueMany(): Promise<CreateAnswer[]> {
    const answers: CreateAnswer[] = [];
    let left = REQUESTS;
    const issueOnes = async (): Promise<void> => {
      while (left-- > 0) answers.push(await issue());
    };
    await Promise.all(Array.from({ length: AT_ONCE }, issueOnes));
    return answers;
  }

  /**
   * Runs `work` while another process sends transactions of the service's wallet; all of them must be mined
   * in the end.
   */
  async function besideAnotherSender(work: () => Promise<void>): Promise<void> {
    const script = join(PROJECT_ROOT, 'test/helpers/chain/other-sender.cjs');
    const sender = startChild('other sender', script, [local.node.url, DEPLOYER], {});
    const stop = stopLater('the other sender', () => sender.stop());
    await sender.lineMatching(/^sending$/);
    await work();
    await stop();
    const [, json = ''] = await sender.lineMatching(/^sent (.*)$/);
    const hashes = JSON.parse(json) as string[];
    // It sends at most once a change of the nonce, so a machine that issues fast leaves it few.
    expect(hashes.length, 'transactions of the other sender').to.be.greaterThan(1);
    for (const hash of hashes) {
      const isMined = async () => (await local.client.getTransactionReceipt(hash)) !== null;
      await eventually(`${hash} of the other sender is mined`, isMined);
    }
  }

  /** The chain has exactly the tokens of these answers, minted by the transactions that they name. */
  async function expectTokensOf(answers: readonly CreateAnswer[], fromBlock: number): Promise<void> {
    const minted = await mintedTokens(local, fromBlock);
    const answered = answers.map(({ body }) => tokenOf(body));
    expect([...minted.keys()].sort()).to.deep.equal(answered.sort());
    for (const { body } of answers) expect(minted.get(tokenOf(body))).to.equal(body.txHash);
  }

  it(`gives ${ABANDONED} callers that left no token, and the next one does not wait for them`, async () => {
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    const voyageNo = Array.from({ length: NUMBERS }, (_, number) => number);
    const credentialSubject = { ...minimal.credentialSubject, voyageNo };
    const leaving = new AbortController();
    const left = Array.from({ length: ABANDONED }, () =>
      create(service.url, { credentialSubject, owner, holder: owner }, leaving).catch(() => undefined),
    );
    const signing = async () => (await healthOf(service.url)).issuing?.signing ?? { busy: 0, waiting: 0 };
    await eventually('they are signed or wait for it', async () => {
      const { busy, waiting } = await signing();
      return busy + waiting === ABANDONED;
    });
    leaving.abort();
    await Promise.all(left);
    const next = await create(service.url, { ...minimal, owner, holder: owner });
    expect(next.status, next.text).to.equal(200);
    const leavers = () => service.output().match(/"CALLER_LEFT"/g)?.length;
    await eventually('all are said to have left', () => leavers() === ABANDONED);
    await eventually('nothing is signed', async () => (await signing()).busy === 0);
    await expectTokensOf([next], fromBlock);
  });

  it(`mints a token for each of ${REQUESTS} requests, ${AT_ONCE} at once, beside others`, async () => {
    await local.client.send('evm_setAutomine', [false]);
    await local.client.send('evm_setIntervalMining', [BLOCK_EVERY_MS]);
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    await besideAnotherSender(async () => {
      const answers = await issueMany();
      expect(answers.filter(({ status }) => status !== 200).map(({ status }) => status)).to.deep.equal([]);
      await expectTokensOf(answers, fromBlock);
    });
  });
});

function tokenOf({ signedW3CDocument }: CreateAnswer['body']): string {
  return signedW3CDocument.credentialStatus.tokenId;
}
