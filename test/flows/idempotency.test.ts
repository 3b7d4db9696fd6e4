import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { API_KEY, AUTHORIZATION, fetchDocument } from '../helpers/processes/documents-call';
import { eventually } from '../helpers/eventually';
import { largeDocument } from '../helpers/credentials/large-document';
import { withoutMining } from '../helpers/chain/mine-blocks';
import { mintedTokens, triedTokens } from '../helpers/chain/minted-tokens';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const SEND = 'eth_sendRawTransaction';
/** Larger than a document that is held in memory until its mint is mined. */
const LARGE_MEGABYTES = 3;

describe('Idempotency-Key', () => {
  let local: LocalSetup;
  let node: RpcProxy;
  let settings: Record<string, string>;
  let service: RunningService;
  let owner: string;

  before(async () => {
    local = await createLocalSetup();
    owner = await local.account(1);
    node = await startRpcProxy(local.node.url);
    settings = { ...local.settings, RPC_URL: node.url, API_KEY };
    service = await startService(settings);
  });

  const bodyOf = (blNumber: string): string =>
    JSON.stringify({ credentialSubject: { ...minimal.credentialSubject, blNumber }, owner, holder: owner });

  const issue = (key: string | undefined, body: string): Promise<CreateAnswer> =>
    create(service.url, body, {
      headers: { ...AUTHORIZATION, ...(key !== undefined && { 'Idempotency-Key': key }) },
    });

  /** Runs `work`, and returns the tokens that were minted meanwhile. */
  async function tokensMadeBy(work: () => Promise<unknown>): Promise<string[]> {
    const fromBlock = (await local.client.getBlockNumber()) + 1;
    await work();
    return [...(await mintedTokens(local, fromBlock)).keys()];
  }

  function expectSame(answers: readonly CreateAnswer[]): void {
    for (const { status, text } of answers) expect(status, text).to.equal(200);
    const texts = new Set(answers.map(({ text }) => text));
    expect(texts.size, 'different answers').to.equal(1);
  }

  function expectError({ status, body }: CreateAnswer, expected: number, message: RegExp): void {
    expect(status).to.equal(expected);
    expect(body).to.have.all.keys('error');
    expect(body.error).to.have.all.keys('message');
    expect(body.error?.message).to.match(message);
  }

  it('mints once for identical simultaneous requests', async () => {
    const [key, body] = [randomUUID(), bodyOf('ATONCE')];
    let answers: CreateAnswer[] = [];
    const tokens = await tokensMadeBy(async () => {
      answers = await Promise.all(Array.from({ length: 5 }, () => issue(key, body)));
    });
    expectSame(answers);
    expect(tokens).to.have.length(1);
  });

  it('makes the same request wait for a running one, and refuses another with 422 at once', async () => {
    const [key, body] = [randomUUID(), bodyOf('RUNNING')];
    let answers: CreateAnswer[] = [];
    const tokens = await tokensMadeBy(() =>
      withoutMining(local, async () => {
        const before = node.requests.length;
        const both = [issue(key, body)];
        const tokenId = await sentSince(before);
        both.push(issue(key, body));
        expectError(await issue(key, bodyOf('OTHER')), 422, /Idempotency-Key/);
        expectUnderWay(await fetchDocument(service.url, tokenId));
        await local.client.send('evm_mine', []);
        answers = await Promise.all(both);
      }),
    );
    expectSame(answers);
    expect(tokens).to.have.length(1);
  });

  it('gives a large document to all waiting requests, which do not block another document', async () => {
    const [key, body] = [randomUUID(), largeDocument(owner, LARGE_MEGABYTES).toString()];
    let answers: CreateAnswer[] = [];
    const tokens = await tokensMadeBy(() =>
      withoutMining(local, async () => {
        const before = node.requests.length;
        const all = Array.from({ length: 3 }, () => issue(key, body));
        await sentSince(before);
        const beforeOther = node.requests.length;
        const other = issue(undefined, largeDocument(owner, LARGE_MEGABYTES).toString());
        await sentSince(beforeOther);
        await local.client.send('evm_mine', []);
        answers = await Promise.all(all);
        expect((await other).status).to.equal(200);
      }),
    );
    expectSame(answers);
    expect(tokens).to.have.length(2);
    expectSame([...answers.slice(0, 1), await issue(key, body)]);
  });

  /** Waits until the node has a mint sent after the first `before` requests, and returns its token. */
  async function sentSince(before: number): Promise<string> {
    await eventually('the mint is sent', async () => {
      const isSent = node.calls.slice(before).includes(SEND);
      return isSent && ((await local.client.send('eth_pendingTransactions', [])) as unknown[]).length > 0;
    });
    return [...triedTokens(node.requests.slice(before))][0] ?? '';
  }

  function expectUnderWay(answer: { status: number; text: string }): void {
    expect(answer.status, answer.text).to.equal(202);
    expect(['{"status":"signed"}', '{"status":"submitted"}']).to.include(answer.text);
  }

  it('still identifies its request after a restart, with another wallet too', async () => {
    const [key, body] = [randomUUID(), bodyOf('RESTART')];
    const answers: CreateAnswer[] = [];
    const tokens = await tokensMadeBy(async () => {
      answers.push(await issue(key, body));
      for (const WALLET_PRIVATE_KEY of [
        Wallet.createRandom().privateKey,
        settings.WALLET_PRIVATE_KEY ?? '',
      ]) {
        await service.stop();
        service = await startService({ ...settings, WALLET_PRIVATE_KEY });
        answers.push(await issue(key, body));
      }
    });
    expectSame(answers);
    expect(tokens).to.have.length(1);
    expectError(await issue(key, bodyOf('OTHER')), 422, /Idempotency-Key/);
  });

  for (const [size, vessel] of Object.entries({ small: 'x', large: 'x'.repeat(70_000) }))
    it(`can be used again after a ${size} request with an invalid field`, async () => {
      const key = randomUUID();
      const credentialSubject = { ...minimal.credentialSubject, vessel };
      const wrong = JSON.stringify({ credentialSubject, owner: 'Alice', holder: owner });
      const both = await Promise.all([issue(key, wrong), issue(key, wrong)]);
      for (const answer of both) expectError(answer, 400, /^\/owner is not an address/);
      await expectIssuedOnce(key, JSON.stringify({ credentialSubject, owner, holder: owner }));
    });

  it('can be used again after the node refused the mint; the first document answers 410', async () => {
    const [key, body] = [randomUUID(), bodyOf('REFUSED')];
    const before = node.requests.length;
    const message = 'insufficient funds for gas * price + value';
    node.answer((method) => (method === SEND ? { error: { code: -32000, message } } : 'none'));
    expectError(await issue(key, body), 500, /^Internal server error$/);
    node.answer(THROUGH);
    const [tokenId = ''] = triedTokens(node.requests.slice(before));
    const gone = await fetchDocument(service.url, tokenId);
    expect(gone.status, gone.text).to.equal(410);
    expect(JSON.parse(gone.text)).to.have.nested.property('error.message').that.is.a('string');
    await expectIssuedOnce(key, body);
    expect((await fetchDocument(service.url, tokenId)).status).to.equal(410);
  });

  async function expectIssuedOnce(key: string, body: string): Promise<void> {
    const answers: CreateAnswer[] = [];
    const tokens = await tokensMadeBy(async () => {
      for (let time = 0; time < 2; time++) answers.push(await issue(key, body));
    });
    expectSame(answers);
    expect(tokens).to.have.length(1);
  }
});
