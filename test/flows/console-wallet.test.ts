import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { getBytes, Wallet } from 'ethers';
import type { Page } from 'playwright-core';
import { createClient } from '../../client/create-client';
import type { Devnet } from '../../devnet/start-devnet';
import { check as checkEvidence } from '../../evidence/evidence';
import { newDeferred } from '../../service/base/time';
import { eventually } from '../helpers/eventually';
import {
  seriousFindings,
  startConsoleInBrowser,
  type ConsoleInBrowser,
} from '../helpers/pages/console-in-browser';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';

/** In a page: a wallet that announces itself, and asks this test. */
const WALLET = `
  const provider = {
    request: async (asked) => {
      const { result, thrown } = await askWallet(asked);
      if (thrown !== undefined) throw thrown;
      return result;
    },
  };
  const detail = { info: { uuid: '1', name: 'Signet', icon: 'data:,', rdns: 'example.signet' }, provider };
  const announce = () => dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }));
  addEventListener('eip6963:requestProvider', announce);`;

const MAY = ['read', 'subscribe'] as const;

describe('the console of a wallet', function () {
  this.timeout(60_000);
  const wallet = Wallet.createRandom();
  let own: ConsoleInBrowser;
  let devnet: Devnet;
  let page: Page;
  let tokenId: string;
  let others: string;
  /** Thrown by the wallet. Undefined: it approves. */
  let refusal: unknown;
  /** The wallet waits for it before it signs. */
  let approval: Promise<void> | undefined;
  /** A key with a scope. */
  let bank: string;

  before(async function () {
    const inBrowser = await startConsoleInBrowser();
    if (inBrowser === undefined) return this.skip();
    own = inBrowser;
    devnet = own.devnet;
    ({ tokenId } = await devnet.issue(undefined, { owner: wallet.address }));
    ({ tokenId: others } = await devnet.issue(undefined, { owner: 1 }));
    page = await own.newPage();
    await page.exposeFunction('askWallet', answer);
    await page.addInitScript(WALLET);
    await page.reload();
  });

  async function answer({ method, params }: { method: string; params: string[] }): Promise<object> {
    if (method === 'eth_requestAccounts') return { result: [wallet.address.toLowerCase()] };
    if (method === 'eth_chainId') return { result: `0x${devnet.chainId.toString(16)}` };
    if (refusal !== undefined) return { thrown: refusal };
    await approval;
    return { result: await wallet.signMessage(getBytes(params[0] ?? '0x')) };
  }

  const logIn = (): Promise<void> => page.getByRole('button', { name: 'Log in with Signet' }).click();
  const logInWith = async (key: string): Promise<void> => {
    await page.getByLabel('Key').fill(key);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
  };
  const links = (): Promise<string[]> => page.getByRole('navigation').getByRole('link').allTextContents();
  const opens = async (path: string): Promise<number> =>
    (await page.request.get(devnet.serviceUrl + path)).status();

  const admin = () => createClient({ url: devnet.serviceUrl, key: devnet.adminApiKey });
  async function endKeys(): Promise<void> {
    const { data } = await admin().GET('/keys');
    for (const { id, isLive } of data?.keys ?? [])
      if (isLive) await admin().DELETE('/keys/{id}', { params: { path: { id } } });
  }

  it('logs in after the wallet was asked, and says why if it was not approved', async () => {
    refusal = { code: 4001, message: 'User denied message signature.' };
    await logIn();
    await page.getByText('You rejected it in the wallet.').waitFor();
    expect(await seriousFindings(page)).to.deep.equal([]);
    refusal = undefined;
    await logIn();
    await page.getByRole('heading', { name: 'Your tokens' }).waitFor();
    expect(await links()).to.deep.equal(['Token', 'Deliveries', 'Subscriptions']);
    await page.getByText(`eip155:${devnet.chainId}:`).waitFor();
    await page.getByText(/^Until \d{4}-\d\d-\d\d /).waitFor();
    expect(await seriousFindings(page)).to.deep.equal([]);
  });

  it('shows the tokens of the account, with their evidence, and nothing of others', async () => {
    const tokens = page.getByRole('table', { name: 'Tokens, those of the newest events first' });
    const found = tokens.getByRole('row').filter({ has: page.getByRole('cell') });
    await found.first().waitFor();
    expect(await found.count()).to.equal(1);
    await tokens.getByTitle(tokenId).click();
    await page.getByRole('heading', { name: 'Endorsement chain' }).waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the evidence' }).click();
    const saved = JSON.parse(readFileSync(await (await downloading).path(), 'utf8')) as unknown;
    expect((await checkEvidence(saved)).report.operations.map((one) => one.operation)).to.deep.equal([
      'mint',
    ]);
    const refused = ['/registries', '/keys', '/documents', `/console/api/documents/${tokenId}/progress`];
    for (const path of refused) expect(await opens(path), path).to.equal(403);
    expect(await opens(`/tokens/${others}`)).to.equal(404);
    expect(await opens('/console/api/overview')).to.equal(204);
    for (const hash of ['overview', 'issue', 'keys', 'verify']) {
      await own.open(page, hash);
      await page.getByRole('heading', { name: 'Your tokens' }).waitFor();
    }
  });

  it('makes a subscription, whose deliveries arrive, and are shown', async () => {
    const sink = await startRawReceiver();
    await own.open(page, 'subscriptions');
    await page.getByRole('button', { name: 'Create a subscription' }).click();
    await page.getByLabel('Sink').fill(sink.url);
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText(sink.url).first().waitFor();
    await own.open(page, 'deliveries');
    await page.getByText('There are no such deliveries.').waitFor();
    await devnet.issue(undefined, { owner: 1 });
    const { tokenId: next } = await devnet.issue(undefined, { owner: wallet.address });
    await eventually('the mint', () => sink.deliveries.some(({ body }) => body.includes(next)));
    for (const { body } of sink.deliveries) expect(body.toString()).to.contain(next);
    await page.getByRole('cell', { name: 'delivered' }).first().waitFor();
    expect(await page.getByRole('table').getByTitle(others).count()).to.equal(0);
  });

  it('asks to log in again at the end of the key, and keeps what was written', async () => {
    await own.open(page, 'subscriptions');
    await page.getByRole('button', { name: 'Create a subscription' }).click();
    await page.getByLabel('Sink').fill('https://sink.example/later');
    await endKeys();
    own.errors.tolerate(/401 \(Unauthorized\)$/);
    await page.getByText('The session ended. Log in to go on.').waitFor();
    await logIn();
    await page.getByRole('dialog').waitFor();
    expect(await page.getByLabel('Sink').inputValue()).to.equal('https://sink.example/later');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Key').waitFor();
  });

  it('takes a key with a scope like that of a wallet, and forgets what somebody else wrote', async () => {
    await logIn();
    await own.open(page, 'subscriptions');
    await page.getByRole('button', { name: 'Create a subscription' }).click();
    await page.getByLabel('Sink').fill('https://sink.example/private');
    await endKeys();
    await page.getByText('The session ended. Log in to go on.').waitFor();
    const body = {
      ...{ name: 'Bank', may: [...MAY], expiresAt: '2099-12-31T00:00:00Z' },
      scope: { tokens: [`urn:service:${devnet.chainId}:${devnet.registryAddress}/${others}`] },
    };
    const { data } = await admin().POST('/keys', { body });
    bank = data?.key ?? '';
    await logInWith(bank);
    await page.getByText('You have no subscriptions').waitFor();
    expect(await page.getByRole('dialog').count()).to.equal(0);
    await own.open(page, 'token');
    await page.getByRole('table').getByTitle(others).waitFor();
    expect(await page.getByRole('table').getByTitle(tokenId).count()).to.equal(0);
  });

  it('is a new page when another tab logs somebody else in', async () => {
    await own.open(page, 'subscriptions');
    await page.getByRole('button', { name: 'Create a subscription' }).click();
    await page.getByLabel('Sink').fill('https://sink.example/private');
    const logInElsewhere = (key: string) => {
      const headers = { Origin: devnet.serviceUrl };
      return page.request.post(`${devnet.serviceUrl}/console/api/session`, { data: { key }, headers });
    };
    for (const [key, who] of [
      [devnet.adminApiKey, 'Operator'],
      [bank, 'Bank'],
      [devnet.adminApiKey, 'Operator'],
    ] as const) {
      await logInElsewhere(key);
      await page.getByText(who, { exact: true }).waitFor();
      expect(await page.getByRole('dialog').count()).to.equal(0);
    }
    // Without an answer that tells it, the page asks when somebody turns to it.
    await page.route('**/console/api/overview', (route) => route.fulfill({ status: 204 }));
    await logInElsewhere(bank);
    await page.evaluate(`dispatchEvent(new Event('focus'))`);
    await page.getByText('Bank', { exact: true }).waitFor();
    await page.unrouteAll();
  });

  it('does nothing when a wallet answers after another log-in', async () => {
    await page.getByRole('button', { name: 'Log out' }).click();
    const { promise, resolve } = newDeferred<void>();
    approval = promise;
    await logIn();
    await page.getByText('Your wallet asks you').waitFor();
    await logInWith(devnet.adminApiKey);
    await page.getByText('Operator', { exact: true }).waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
    const answered = page.waitForResponse('**/login');
    resolve();
    await (await answered).finished();
    await page.evaluate(`fetch('/console/api/facts')`);
    expect(asked).to.include('POST /login').and.not.to.include('POST /console/api/session');
  });

  // The last: it is about all tests before.
  it('violated no policy', () => {
    expect([own.errors.unexpected(), own.errors.missing()]).to.deep.equal([[], []]);
  });
});
