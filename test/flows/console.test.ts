import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import type { Devnet } from '../../devnet/devnet';
import { eventually } from '../helpers/eventually';
import { findChromium, seriousFindings, startBrowser } from '../helpers/pages/browser';
import { runningDevnet } from '../helpers/processes/running-devnet';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';
import { temporaryFolder } from '../helpers/temporary-folder';

/** A receiver that refuses gets 50 attempts in a moment, and then the event is a dead letter. */
const GIVE_UP_SOON = { webhook: { retry: { initialDelayMs: 1, maxDelayMs: 1, giveUpAfterMs: 0 } } };
const PATIENCE_MS = 10_000;
/** Each page, and a text that it has when its data is there. */
const PAGES = {
  overview: 'Mined, not final',
  issue: 'Bill of Lading number',
  token: 'Hexadecimal or decimal digits.',
  deliveries: 'Last answer',
  subscriptions: 'Test',
  verify: 'Or paste the credential',
};

describe('the console in a browser', function () {
  this.timeout(60_000);
  const folder = temporaryFolder();
  let devnet: Devnet;
  let browser: Browser;
  let page: Page;
  const alerts: string[] = [];

  before(async function () {
    const path = findChromium();
    if (path === undefined) {
      console.log('      Chromium is not installed');
      this.skip();
    }
    writeFileSync(join(folder.path, 'service.config.json'), JSON.stringify(GIVE_UP_SOON));
    [devnet, browser] = await Promise.all([runningDevnet({ folder: folder.path }), startBrowser(path)]);
    page = await newPage();
    await page.goto(`${devnet.serviceUrl}/console`);
    await page.getByLabel('Key').fill(devnet.adminApiKey);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  after(async () => {
    await browser?.close();
    await devnet?.stop();
    folder.remove();
  });

  /** A page of its own, with the cookies of this test. Axe is injected into it. */
  async function newPage(): Promise<Page> {
    const context = await browser.newContext({ bypassCSP: true, acceptDownloads: true });
    context.setDefaultTimeout(PATIENCE_MS);
    const made = await context.newPage();
    made.on('dialog', (dialog) => {
      // The form asks before a page with a draft is left.
      if (dialog.type() === 'beforeunload') return void dialog.accept();
      alerts.push(dialog.message());
      void dialog.dismiss();
    });
    return made;
  }

  const open = async (hash: string, to: Page = page): Promise<void> => {
    await to.goto(`${devnet.serviceUrl}/console#/${hash}`);
  };

  it('issues a document with an attachment, and gives the credential', async () => {
    await open('issue');
    await page.getByLabel('Bill of Lading number').fill('BROWSER-1');
    const file = { name: 'invoice.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7 test') };
    await page.getByLabel('Add files').setInputFiles(file);
    await page.getByText('invoice.pdf').waitFor();
    await page.getByRole('button', { name: 'Issue', exact: true }).click();
    await page.getByText('no reorganisation can remove it').waitFor();
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
    await open('issue');
    await page.getByRole('button', { name: 'Issue another document' }).click();
    const keys: (string | undefined)[] = [];
    const path = '**/console/api/create/*';
    await page.route(path, async (route) => {
      keys.push(route.request().headers()['idempotency-key']);
      await route.fetch();
      await route.abort();
    });
    await page.getByLabel('Bill of Lading number').fill('BROWSER-2');
    await page.getByRole('button', { name: 'Issue', exact: true }).click();
    await page.getByText('The document may have been issued.').waitFor();
    await page.unroute(path);
    const again = page.waitForRequest(path);
    await page.getByRole('button', { name: 'Try again' }).click();
    expect([(await again).headers()['idempotency-key']]).to.deep.equal(keys);
    await page.getByText('no reorganisation can remove it').waitFor();
  });

  it('marks what the signature would not protect before anything is sent', async () => {
    await open('issue');
    await page.getByRole('button', { name: 'Issue another document' }).click();
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/create/')) sent.push(request.url());
    });
    await page.getByLabel('Vessel').fill('PO_:123');
    await page.getByText(/_:/).first().waitFor();
    await page.getByRole('button', { name: 'Issue', exact: true }).click();
    await page.getByText(/problem.* to solve first/).waitFor();
    expect(sent).to.deep.equal([]);
  });

  it('follows a transfer of a token live', async () => {
    const { tokenId } = await devnet.issue();
    await open(`token?id=${tokenId}`);
    await page.getByRole('heading', { name: 'Endorsement chain' }).waitFor();
    const { transactionHash } = await devnet.transferHolder(tokenId, { to: 2 });
    const transfer = page.getByRole('listitem').filter({ hasText: 'Holder transferred' });
    await transfer.first().waitFor();
    await transfer.getByText('delivered').first().waitFor();
    expect(transactionHash).to.match(/^0x/);
  });

  it('delivers a dead letter again when the receiver is back', async () => {
    const { tokenId } = await devnet.issue();
    await devnet.webhooks.next({ tokenId, type: 'token_received' });
    devnet.receiver.refuse(500);
    await devnet.nominate(tokenId, { to: 3 });
    await open('deliveries?state=dead');
    await page.getByRole('link', { name: 'nomination' }).first().click();
    const attempts = page.getByRole('table', { name: 'Attempts for the subscription default' });
    await attempts.getByText('500', { exact: true }).first().waitFor();
    devnet.receiver.accept();
    await page.getByRole('button', { name: 'Deliver again' }).click();
    const { data } = await devnet.webhooks.next({ tokenId, type: 'nomination' });
    expect(data.payload.nominee).to.equal(devnet.accounts[3]?.toLowerCase());
  });

  it('creates a filtered subscription, which gets what it selects', async () => {
    const sink = await startRawReceiver();
    try {
      await open('subscriptions');
      await page.getByRole('button', { name: 'Create a subscription' }).click();
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
    } finally {
      await sink.close();
    }
  });

  it('shows that a credential was changed, and its texts as texts', async () => {
    const subject = { type: ['BillOfLading'], scac: 'SGPU', blNumber: '1', vessel: HOSTILE };
    const { document } = await devnet.issue(subject);
    const upload = async (credential: unknown): Promise<void> => {
      await open('verify');
      await page.getByLabel('Credential file').setInputFiles({
        name: 'credential.json',
        mimeType: 'application/json',
        buffer: Buffer.from(JSON.stringify(credential)),
      });
      await page.getByRole('heading', { name: 'Looked up outside' }).waitFor();
    };
    await upload(document);
    const integrity = page.getByRole('region', { name: 'Document integrity' });
    await integrity.getByText('valid', { exact: true }).first().waitFor();
    await page.getByText('<script>alert(1)</script>').first().waitFor();
    await page.getByText('\\u202e').first().waitFor();
    await upload({ ...document, credentialSubject: { ...document.credentialSubject, blNumber: '2' } });
    await integrity.getByText('invalid', { exact: true }).first().waitFor();
    expect(alerts).to.deep.equal([]);
  });

  it('says that the service is lost, and goes on when it is back', async () => {
    const { tokenId } = await devnet.issue();
    await open(`token?id=${tokenId}`);
    await page.getByRole('heading', { name: 'Endorsement chain' }).waitFor();
    // A restart may be over before anybody has to know.
    await page.route('**/console/api/{overview,stream}', (route) => route.abort());
    await devnet.restartService();
    const banner = page.getByText('The service does not answer.');
    await banner.waitFor();
    await page.unrouteAll();
    await banner.waitFor({ state: 'detached' });
    await devnet.transferHolder(tokenId, { to: 2 });
    await page.getByRole('listitem').filter({ hasText: 'Holder transferred' }).first().waitFor();
  });

  for (const colorScheme of ['light', 'dark'] as const)
    it(`has no serious finding of axe, and fits a narrow window (${colorScheme})`, async () => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width: 360, height: 740 });
      for (const [hash, content] of Object.entries(PAGES)) {
        await open(hash);
        await page.getByText(content).first().waitFor();
        expect(await seriousFindings(page), hash).to.deep.equal([]);
        const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
        expect(width, `${hash} is wider than the window`).to.be.at.most(360);
      }
    });

  it('asks to log in again after the log-out, and gets nothing from another host', async () => {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).origin));
    await page.setViewportSize({ width: 1280, height: 900 });
    await open('overview');
    await page.reload();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Key').waitFor();
    expect(new Set(asked)).to.deep.equal(new Set([new URL(devnet.serviceUrl).origin]));
  });
});

const HOSTILE = `<script>alert(1)</script>\u202egnp.exe ${'x'.repeat(10_000)}`;
