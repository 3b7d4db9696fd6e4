import { readFileSync } from 'node:fs';
// eslint-disable-next-line no-restricted-syntax -- real time: the page of a browser polls.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { createClient } from '../../client/create-client';
import { MINT_EVENTS } from '../../devnet/bill-of-lading';
import type { Devnet } from '../../devnet/start-devnet';
import { newDeferred } from '../../service/base/time';
import { check as checkEvidence } from '../../evidence/evidence';
import { eventually } from '../helpers/eventually';
import {
  abortedError,
  answeredError,
  chooseCredential,
  CONSOLE_READ_KEY,
  seriousFindings,
  startConsoleInBrowser,
  type ConsoleInBrowser,
} from '../helpers/pages/console-in-browser';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';

const HOSTILE = `<script>alert(1)</script>\u202egnp.exe ${'x'.repeat(10_000)}`;
/** Narrow, as a telephone is. */
const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 720 };
/** A page asks for the overview four times as often as for users. */
const LONGER_THAN_A_POLL_MS = 400;
/** The width of a page that its window does not show. A part of the window is kept for the scroll bar. */
const HIDDEN_WIDTH = 'document.documentElement.scrollWidth - document.documentElement.offsetWidth';
const STAGE_HEADS = ['Stage', 'Begins', 'Duration'];
const ISSUING_STAGES = ['request', 'signature', 'mint', 'block', 'reading'];
/** The cells that are wider than their place, and the bars that nobody sees. */
const CUT_OFF = `[...document.querySelectorAll('td:not(:empty), rect')]
  .filter((one) => one.scrollWidth > one.clientWidth || one.getBoundingClientRect().width < 1)
  .map(({ outerHTML }) => outerHTML)`;
/** More than any page has before its content. */
const MOST_TABS = 40;

describe('the console in a browser', function () {
  this.timeout(60_000);
  let own: ConsoleInBrowser;
  let devnet: Devnet;
  let page: Page;
  /** A page that gets keys only. */
  let typist: Page;

  before(async function () {
    const inBrowser = await startConsoleInBrowser();
    if (inBrowser === undefined) return this.skip();
    own = inBrowser;
    devnet = own.devnet;
    page = await own.logIn(devnet.adminApiKey);
    typist = await own.newPage();
  });

  /** Opens a page, and waits for its content. */
  async function show(hash: string, content: Locator): Promise<void> {
    await own.open(page, hash);
    await content.first().waitFor();
  }

  /** Checks what a page shows in a narrow window, light and dark. */
  async function expectGood(shown = page): Promise<void> {
    await shown.setViewportSize(NARROW);
    expect(await seriousFindings(shown)).to.deep.equal([]);
    expect(await shown.evaluate(HIDDEN_WIDTH)).to.equal(0);
    for (const dialog of await shown.getByRole('dialog').all()) {
      const { x, width } = (await dialog.boundingBox()) ?? { x: 0, width: 0 };
      expect([x >= 0, x + width <= NARROW.width]).to.deep.equal([true, true]);
    }
    await shown.setViewportSize(WIDE);
  }

  const press = (key: string): Promise<void> => typist.keyboard.press(key);
  const link = (name: string): Locator => typist.getByRole('link', { name, exact: true });
  const focused = (element: Locator): Locator => element.and(typist.locator(':focus'));
  /** Moves the focus to an element. Keys then go to it. */
  async function tabTo(element: Locator, key = 'Tab'): Promise<void> {
    await element.waitFor();
    for (let count = 0; count < MOST_TABS; count++) {
      if ((await focused(element).count()) === 1) return;
      await press(key);
    }
    throw new Error(`${MOST_TABS} times ${key} do not reach ${String(element)}`);
  }

  /** Opens a page by its link, and waits until the page has the focus. */
  async function follow(name: string, key: string): Promise<void> {
    await tabTo(link(name), key);
    await press('Enter');
    await focused(typist.getByRole('main')).waitFor();
  }

  it('issues a document with an attachment, after its problems, and gives the credential', async () => {
    const number = page.getByLabel('Bill of Lading number');
    const issue = page.getByRole('button', { name: 'Issue', exact: true });
    await show('issue', number);
    await number.fill('');
    await page.getByLabel('Vessel').fill('PO_:123');
    await issue.click();
    await page.getByText('2 problems to solve first').waitFor();
    await page.getByText('contains "_:"').waitFor();
    await expectGood();
    await page.getByLabel('Vessel').fill('Ever Given');
    await number.fill('BROWSER-1');
    const file = { name: 'invoice.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7 test') };
    await page.getByLabel('Add files').setInputFiles(file);
    await page.getByText('invoice.pdf').waitFor();
    await issue.click();
    await page.getByText('Its block is final').waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the credential' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).to.equal('BROWSER-1.json');
    const credential = JSON.parse(readFileSync(await download.path(), 'utf8')) as {
      credentialSubject: Record<string, unknown>;
    };
    expect(credential.credentialSubject).to.deep.include({
      blNumber: 'BROWSER-1',
      attachments: [
        { data: file.buffer.toString('base64'), filename: 'invoice.pdf', mimeType: 'application/pdf' },
      ],
    });
  });

  it('issues a document once if the first answer is lost', async () => {
    await page.getByRole('button', { name: 'Issue another document' }).click();
    own.errors.provoke(abortedError('/create/BILL_OF_LADING'));
    const keys: (string | undefined)[] = [];
    const path = '**/create/*';
    await page.route(path, async (route) => {
      keys.push(route.request().headers()['idempotency-key']);
      await route.fetch();
      await route.abort();
    });
    await page.getByLabel('Bill of Lading number').fill('BROWSER-2');
    // Enter in a field issues nothing.
    await page.getByLabel('Bill of Lading number').press('Enter');
    await page.getByRole('button', { name: 'Issue', exact: true }).click();
    await page.getByText('The document may have been issued.').waitFor();
    await page.unroute(path);
    const again = page.waitForRequest(path);
    await page.getByRole('button', { name: 'Try again' }).click();
    expect([(await again).headers()['idempotency-key']]).to.deep.equal(keys);
    await page.getByText('Its block is final').waitFor();
  });

  it('finds the newest document again after a reload', async () => {
    await page.reload();
    const documents = page.getByRole('table', { name: 'Documents, the newest first' }).getByRole('link');
    await show('token', documents);
    await expectGood();
    await documents.first().click();
    await page.getByRole('heading', { name: 'Endorsement chain' }).waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the credential' }).click();
    expect((await downloading).suggestedFilename()).to.equal('BROWSER-2.json');
  });

  it('shows how long each stage of a document took, in order, in words', async () => {
    const { tokenId } = await devnet.issue();
    const table = page.getByRole('table', { name: 'Stages of the document' });
    const rows = table.getByRole('row').filter({ has: page.getByRole('cell') });
    await show(`token?id=${tokenId}`, rows);
    const last = MINT_EVENTS.at(-1);
    await rows.filter({ hasText: `delivery of ${last} to default` }).waitFor();
    for (const viewport of [WIDE, NARROW]) {
      await page.setViewportSize(viewport);
      expect(await table.getByRole('columnheader').allTextContents()).to.deep.equal(STAGE_HEADS);
      const cells = await Promise.all((await rows.all()).map((row) => row.getByRole('cell').allInnerTexts()));
      const stages = cells.map(([stage]) => stage);
      expect(stages.slice(0, ISSUING_STAGES.length)).to.deep.equal(ISSUING_STAGES);
      for (const stage of ['queue', 'delivery'])
        expect(stages.filter((one) => one?.startsWith(`${stage} `))).to.deep.equal(
          MINT_EVENTS.map((type) => `${stage} of ${type} to default`),
        );
      const times = cells.map(([, begins = '']) => begins);
      for (const begins of times) expect(begins).to.match(/^at [\d,.]+ m?s$/);
      const took = cells.map(([, , duration = '']) => duration);
      for (const duration of took) expect(duration).to.match(/^([\d,.]+ m?s|less than 1 ms)$/);
      expect(await page.evaluate(CUT_OFF)).to.deep.equal([]);
    }
    await expectGood();
  });

  it('follows a transfer of a token live, and gives the evidence of it', async () => {
    const { tokenId } = await devnet.issue();
    await show(`token?id=${tokenId}`, page.getByRole('heading', { name: 'Endorsement chain' }));
    const { transactionHash } = await devnet.transferHolder(tokenId, { to: 2 });
    const transfer = page.getByRole('listitem').filter({ hasText: 'Holder transferred' });
    await transfer.first().waitFor();
    await transfer.getByText('delivered').first().waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the evidence' }).click();
    const saved = JSON.parse(readFileSync(await (await downloading).path(), 'utf8')) as unknown;
    const { file, report } = await checkEvidence(saved);
    expect(file.events.map((event) => event.transactionHash)).to.include(transactionHash);
    expect(report.operations.map(({ operation }) => operation)).to.deep.equal(['mint', 'transferHolder']);
  });

  it('logs in and shows a token with the keyboard alone', async () => {
    const { tokenId } = await devnet.issue();
    await tabTo(typist.getByLabel('Key'));
    await typist.keyboard.type(devnet.adminApiKey);
    await press('Enter');
    await typist.getByText('Mined, not final').waitFor();
    await follow('Token', 'Tab');
    const id = typist.getByLabel('Token id');
    await press('Tab');
    await focused(id).waitFor();
    await typist.keyboard.type(tokenId);
    await press('Enter');
    await typist.getByRole('heading', { name: 'Endorsement chain' }).waitFor();
    await focused(id).waitFor();
    await tabTo(typist.getByRole('button', { name: 'Copy id of the trace' }));
  });

  it('skips the navigation with the keyboard alone', async () => {
    await typist.reload();
    await typist.getByRole('heading', { name: 'Endorsement chain' }).waitFor();
    await press('Tab');
    await focused(link('Skip to the content')).waitFor();
    await press('Enter');
    await focused(typist.getByRole('main')).waitFor();
    await press('Tab');
    await focused(typist.getByLabel('Token id')).waitFor();
  });

  it('delivers a dead letter again, with the keyboard alone, when the receiver is back', async () => {
    const { tokenId, document } = await devnet.issue(undefined, { remarks: 'shipped on board' });
    await devnet.webhooks.next({ tokenId, type: 'token_received' });
    devnet.receiver.refuse(500);
    await devnet.nominate(tokenId, { to: 3 });
    await show('token', page.getByText('Hexadecimal or decimal digits.'));
    await chooseCredential(page, document);
    await page.getByText('shipped on board').waitFor();
    const nomination = page.getByRole('listitem').filter({ hasText: 'Nominee' });
    await nomination.getByText('dead letter').first().waitFor();
    await expectGood();
    const event = page.getByRole('link', { name: 'nomination' });
    await show('deliveries?state=dead', event);
    await expectGood();
    await event.click();
    const attempts = page.getByRole('table', { name: 'Attempts for the subscription default' });
    await attempts.getByText('500', { exact: true }).first().waitFor();
    await expectGood();
    devnet.receiver.accept();
    await follow('Deliveries', 'Shift+Tab');
    await tabTo(typist.getByLabel('State'));
    for (const value of ['waiting', 'failed', 'dead']) {
      await press('ArrowDown');
      await typist.waitForURL(`**#/deliveries?state=${value}`);
    }
    await tabTo(link('nomination'));
    await press('Enter');
    await tabTo(typist.getByRole('button', { name: 'Deliver again' }));
    await press('Enter');
    const { data } = await devnet.webhooks.next({ tokenId, type: 'nomination' });
    expect(data.payload.nominee).to.equal(devnet.accounts[3]?.toLowerCase());
  });

  it('creates a filtered subscription, which gets what it selects', async () => {
    const sink = await startRawReceiver();
    await show('subscriptions', page.getByRole('link', { name: 'Show its deliveries' }));
    await expectGood();
    await page.getByRole('button', { name: 'Create a subscription' }).click();
    await page.getByRole('dialog').getByLabel('Sink').waitFor();
    await expectGood();
    own.errors.provoke(answeredError('/subscriptions', '400 (Bad Request)'));
    await page.getByLabel('Sink').fill('ftp://sink.example');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.locator('[name=sink][aria-invalid=true]:focus').waitFor();
    await page.getByLabel('Sink').fill(sink.url);
    await page.getByLabel('nomination', { exact: true }).check();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText(sink.url).first().waitFor();
    const { tokenId } = await devnet.issue();
    await devnet.nominate(tokenId, { to: 3 });
    await eventually('the nomination', () => sink.deliveries.length > 0);
    expect(
      sink.deliveries.map(({ body }) => (JSON.parse(body.toString()) as { type: string }).type),
    ).to.deep.equal(['com.service.etr.nomination']);
    // Later dead letters are those of the devnet's own subscription.
    const { serviceUrl: url, adminApiKey } = devnet;
    const client = createClient({ url, key: adminApiKey });
    const { data = [] } = await client.GET('/subscriptions');
    for (const { id } of data.filter((one) => one.sink === sink.url))
      await client.DELETE('/subscriptions/{id}', { params: { path: { id } } });
  });

  it('makes a key with the keyboard alone, which opens its scope until it is revoked', async () => {
    await typist.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const { tokenId } = await devnet.issue();
    await follow('Keys', 'Shift+Tab');
    const button = typist.getByRole('button', { name: 'Create a key' });
    const dialog = typist.getByRole('dialog', { name: 'Create a key' });
    await tabTo(button);
    await press('Space');
    await focused(dialog.getByLabel('Name')).waitFor();
    await expectGood(typist);
    await press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await focused(button).waitFor();
    await press('Enter');
    await focused(dialog.getByLabel('Name')).waitFor();
    await typist.keyboard.type('Bank');
    await tabTo(dialog.getByLabel('Scope'));
    await typist.keyboard.type('eip155:1:0x1');
    await tabTo(dialog.getByLabel('Last day'));
    await typist.keyboard.type('12312099');
    own.errors.provoke(answeredError('/keys', '400 (Bad Request)'));
    await press('Enter');
    await dialog.getByText('Is not an account on a chain.').waitFor();
    await focused(dialog.getByLabel('Scope')).waitFor();
    await press('ControlOrMeta+A');
    await typist.keyboard.type(`urn:service:${devnet.chainId}:${devnet.registryAddress}/${tokenId}`);
    await tabTo(dialog.getByRole('button', { name: 'Create' }));
    await press('Enter');
    await tabTo(typist.getByRole('button', { name: 'Copy key' }));
    await press('Enter');
    await typist.getByText('Copied the key.').waitFor();
    await expectGood(typist);
    const key = await typist.evaluate<string>('navigator.clipboard.readText()');
    const opens = async (path: string): Promise<number> => {
      const headers = { Authorization: `Bearer ${key}` };
      return (await fetch(`${devnet.serviceUrl}${path}`, { headers })).status;
    };
    expect([await opens(`/tokens/${tokenId}`), await opens('/keys')]).to.deep.equal([200, 403]);
    // Another key would take the place of the one that is shown.
    await tabTo(button, 'Shift+Tab');
    await press('Enter');
    expect([await dialog.count(), await typist.getByText(key).count()]).to.deep.equal([0, 1]);
    await tabTo(typist.getByRole('button', { name: 'I have copied it' }));
    await press('Enter');
    await typist.getByText(key).waitFor({ state: 'detached' });
    await tabTo(typist.getByRole('button', { name: 'Revoke Bank' }));
    await press('Enter');
    const question = typist.getByRole('dialog', { name: 'Revoke the key' });
    await focused(question.getByRole('button', { name: 'Cancel' })).waitFor();
    await tabTo(question.getByRole('button', { name: 'Revoke' }));
    await press('Enter');
    await typist.getByRole('row', { name: /Bank.*read.*revoked/ }).waitFor();
    expect(await opens(`/tokens/${tokenId}`)).to.equal(401);
  });

  it('keeps the dialog open while a subscription is created, however often Escape is pressed', async () => {
    const dialog = typist.getByRole('dialog', { name: 'Create a subscription' });
    const released = newDeferred<void>();
    const path = /\/subscriptions(\?|$)/;
    own.errors.provoke(abortedError('/subscriptions'));
    await typist.route(path, async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await released.promise;
      await route.abort();
    });
    await follow('Subscriptions', 'Shift+Tab');
    await tabTo(typist.getByRole('button', { name: 'Create a subscription' }));
    await press('Enter');
    await focused(dialog.getByLabel('Sink')).waitFor();
    await typist.keyboard.type('http://127.0.0.1:1/');
    await press('Enter');
    await dialog.getByRole('button', { name: 'Create …' }).waitFor();
    for (let count = 0; count < 3; count++) await press('Escape');
    released.resolve();
    await dialog.getByText('CONNECTION_LOST').waitFor();
    await typist.unroute(path);
    await press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });

  it('leaves the focus on the button of an action', async () => {
    await tabTo(typist.getByRole('button', { name: 'Pause default' }));
    await press('Enter');
    await focused(typist.getByRole('button', { name: 'Resume default' })).waitFor();
    await press('Enter');
    await focused(typist.getByRole('button', { name: 'Pause default' })).waitFor();
  });

  it('keeps the rows of deliveries at their places while somebody points at them', async () => {
    const { tokenId } = await devnet.issue();
    await page.mouse.move(0, 0);
    const first = page.getByRole('row').nth(1);
    await show('deliveries', first.getByText(tokenId.slice(0, 8)));
    await first.hover();
    const newest = await first.getByRole('link').first().innerText();
    await devnet.transferHolder(tokenId, { to: 2 });
    await page.getByText('1 newer delivery, shown when you leave the list.').waitFor();
    expect(await first.getByRole('link').first().innerText()).to.equal(newest);
    await page.mouse.move(0, 0);
    await first.getByText('holder_transfer').waitFor();
    // Among the rows with the keyboard, too.
    const event = first.getByRole('link').first();
    const focused = await event.getAttribute('href');
    await event.focus();
    await devnet.transferHolder(tokenId, { to: 1 });
    await page.getByText('1 newer delivery, shown when you leave the list.').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await event.getAttribute('href')).to.equal(focused);
    await page.getByText('1 newer delivery, shown when you leave the list.').waitFor();
    await page.getByLabel('State').focus();
    await eventually('the newer row', async () => (await event.getAttribute('href')) !== focused);
  });

  it('shows the token of the last credential file that was chosen', async () => {
    const [one, other] = [await devnet.issue(), await devnet.issue()];
    await show(`token?id=${one.tokenId}`, page.getByTitle(one.tokenId));
    await chooseCredential(page, other.document);
    await page.getByTitle(other.tokenId).waitFor();
    await chooseCredential(page, { ...one.document, credentialStatus: {} });
    await page.getByText('CREDENTIAL_STATUS_INVALID').waitFor();
    expect(await page.getByTitle(other.tokenId).count()).to.equal(0);
    expect(await page.getByTitle(one.tokenId).count()).to.equal(0);
  });

  it('shows that a credential was changed, and its texts as texts', async () => {
    const subject = { type: ['BillOfLading'], scac: 'SGPU', blNumber: '1', vessel: HOSTILE };
    const { document } = await devnet.issue(subject);
    const verify = async (credential: unknown, outcome: string): Promise<void> => {
      await show('verify', page.getByLabel('Or paste the credential'));
      await chooseCredential(page, credential);
      const integrity = page.getByRole('region', { name: 'Document integrity' });
      await integrity.getByText(outcome, { exact: true }).first().waitFor();
      await expectGood();
    };
    await verify(document, 'valid');
    await page.getByText('<script>alert(1)</script>').first().waitFor();
    await page.getByText('\\u202e').first().waitFor();
    await verify({ ...document, credentialSubject: { ...subject, blNumber: '2' } }, 'invalid');
    expect(own.alerts).to.deep.equal([]);
  });

  it('says that the service is lost, and goes on when it is back', async () => {
    const { tokenId } = await devnet.issue();
    await show('overview', page.getByText('All is well.'));
    own.errors.provoke(abortedError('/console/api/overview'));
    // The page may ask while the service ends.
    own.errors.tolerate(/^\/(console\/api\/overview|tokens\/\w+): Failed to load resource: net::ERR_/);
    // A restart may be over before anybody has to know.
    await page.route('**/console/api/overview', (route) => route.abort());
    await page.getByText('Not known: the service does not answer.').waitFor();
    await Promise.all([expectGood(), devnet.restartService()]);
    await show(`token?id=${tokenId}`, page.getByRole('heading', { name: 'Endorsement chain' }));
    const banner = page.getByText('The service does not answer.', { exact: true });
    await banner.waitFor();
    await page.unrouteAll();
    await banner.waitFor({ state: 'detached' });
    await devnet.transferHolder(tokenId, { to: 2 });
    await page.getByRole('listitem').filter({ hasText: 'Holder transferred' }).first().waitFor();
  });

  it('shows the page of an address that changes while the console appears', async () => {
    const hasty = await page.context().newPage();
    // Microtasks run before the next frame of the page, and before any effect that waits for it.
    await hasty.addInitScript(`
      new MutationObserver((_, observer) => {
        if (!document.querySelector('nav')) return;
        observer.disconnect();
        location.hash = '#/verify';
      }).observe(document, { childList: true, subtree: true });
    `);
    await own.open(hasty, 'subscriptions');
    await hasty.getByRole('heading', { name: 'Verify' }).waitFor();
    await hasty.close();
  });

  it('lets a reader look, and change nothing', async () => {
    const { tokenId } = await devnet.issue();
    const { id } = await devnet.webhooks.next({ tokenId, type: 'token_received' });
    const reader = await own.logIn(CONSOLE_READ_KEY);
    const buttons = new Set<string>();
    for (const [hash, content] of [
      ['overview', reader.getByText('Mined, not final')],
      [`token?id=${tokenId}`, reader.getByRole('listitem').getByText('delivered')],
      ['deliveries', reader.getByRole('link', { name: 'token_received' })],
      [`events/${id}`, reader.getByText('delivering again needs ADMIN_API_KEY.')],
      ['issue', reader.getByText('issuing needs ADMIN_API_KEY.')],
      ['subscriptions', reader.getByRole('link', { name: 'Show its deliveries' })],
      ['deliveries?state=dead&subscription=default', reader.getByText('There are no such deliveries.')],
      ['keys', reader.getByRole('row', { name: 'Bank' })],
      ['verify', reader.getByLabel('Or paste the credential')],
    ] as const) {
      await own.open(reader, hash);
      await content.first().waitFor();
      for (const name of await reader.getByRole('button').allInnerTexts()) buttons.add(name);
    }
    // A long list has it.
    buttons.delete('Show more');
    // Those without a text copy a value, or choose a file.
    expect([...buttons].sort()).to.deep.equal([
      ...['', 'Download the credential', 'Download the evidence', 'Log out', 'Show', 'Verify'],
    ]);
    own.errors.provoke(answeredError('/create/BILL_OF_LADING', '403 (Forbidden)'));
    const answer = await reader.evaluate(async () => {
      const headers = { 'Content-Type': 'application/json' };
      const init = { method: 'POST', headers, body: '{}' };
      const response = await fetch('/create/BILL_OF_LADING', init);
      return [response.status, response.headers.get('X-Error-Code')];
    });
    expect(answer).to.deep.equal([403, 'KEY_READ_ONLY']);
    await reader.context().close();
  });

  it('asks to log in again after the log-out, and gets nothing from another host', async () => {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).origin));
    await show('overview', page.getByText('Mined, not final'));
    await expectGood();
    await page.reload();
    // While the session ends, the page does not ask for more.
    let asksMeanwhile = 0;
    await page.route('**/console/api/session', async (route) => {
      const before = asked.length;
      await sleep(LONGER_THAN_A_POLL_MS);
      asksMeanwhile = asked.length - before;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Key').waitFor();
    expect(asksMeanwhile).to.equal(0);
    await page.unrouteAll();
    await expectGood();
    own.errors.provoke(answeredError('/console/api/session', '401 (Unauthorized)'));
    await page.getByLabel('Key').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('CONSOLE_KEY_WRONG').waitFor();
    await expectGood();
    expect(new Set(asked)).to.deep.equal(new Set([new URL(devnet.serviceUrl).origin]));
  });

  // The last: it is about all tests before.
  it('had no other errors than those of the tests before, and violated no policy', () => {
    expect([own.errors.unexpected(), own.errors.missing()]).to.deep.equal([[], []]);
  });
});
