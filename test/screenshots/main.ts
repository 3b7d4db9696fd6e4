import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { startDevnet, type Devnet } from '../../devnet/start-devnet';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { findChromium, startBrowser } from '../helpers/pages/browser';
import { temporaryFolder } from '../helpers/temporary-folder';

// `npm run screenshots` makes the pictures of docs/console.md: each page of the console, light and dark.

const FOLDER = join(PROJECT_ROOT, 'docs/console');
/** A refused event is a dead letter after a moment. */
const GIVE_UP_SOON = { webhook: { retry: { initialDelayMs: 1, maxDelayMs: 1, giveUpAfterMs: 0 } } };

/** So long a token is transferred to and fro, for the plots. */
const BUSY_MS = 60_000;
const FILTERED = {
  protocol: 'HTTP',
  types: ['com.service.etr.nomination', 'com.service.etr.beneficiary_transfer'],
};

/** A token with a life, a filtered subscription, a busy minute, and an event that could not be delivered. */
async function prepare(devnet: Devnet): Promise<{ tokenId: string; credential: object; eventId: string }> {
  await subscribe(devnet);
  const issued = await devnet.issue(undefined, { owner: 1, remarks: 'shipped on board' });
  const { tokenId, document: credential } = issued;
  await devnet.transferHolder(tokenId, { to: 2, remark: 'for collection' });
  await devnet.nominate(tokenId, { to: 3 });
  await devnet.transferBeneficiary(tokenId, { to: 3 });
  await devnet.webhooks.next({ type: 'beneficiary_transfer', tokenId });
  const other = await devnet.issue(undefined, { owner: 1 });
  for (const end = Date.now() + BUSY_MS; Date.now() < end;) {
    await devnet.transferHolder(other.tokenId, { to: 2 });
    await devnet.transferHolder(other.tokenId, { to: 1 });
    await sleep(2_000);
  }
  devnet.receiver.refuse(500);
  await devnet.nominate(other.tokenId, { to: 4 });
  return { tokenId, credential, eventId: await deadLetter(devnet) };
}

async function subscribe({ serviceUrl, adminApiKey, receiverUrl }: Devnet): Promise<void> {
  const body = JSON.stringify({ ...FILTERED, sink: receiverUrl });
  const headers = { authorization: `Bearer ${adminApiKey}`, 'content-type': 'application/json' };
  const { status } = await fetch(`${serviceUrl}/subscriptions`, { method: 'POST', headers, body });
  if (status !== 201) throw new Error(`POST /subscriptions answered ${status}.`);
}

/** Waits for a dead letter, and returns its event. */
async function deadLetter({ serviceUrl, adminApiKey }: Devnet): Promise<string> {
  const headers = { authorization: `Bearer ${adminApiKey}` };
  for (;;) {
    const answer = await fetch(`${serviceUrl}/subscriptions/default/deliveries?state=dead`, { headers });
    const [first] = (await answer.json()) as { id: string }[];
    if (first) return first.id;
    await sleep(100);
  }
}

async function take(devnet: Devnet, browser: Browser, colorScheme: 'light' | 'dark'): Promise<void> {
  const { tokenId, credential, eventId } = await prepared;
  const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 1200 } });
  const open = (hash: string): Promise<unknown> => page.goto(`${devnet.serviceUrl}/console#/${hash}`);
  await open('overview');
  await page.getByLabel('Key').fill(devnet.adminApiKey);
  await page.getByRole('button', { name: 'Log in' }).click();
  const shoot = async (name: string): Promise<void> => {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.mouse.move(0, 0);
    // The first figures come within a second.
    await page.waitForTimeout(1_500);
    await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}.png`) });
  };
  await shoot('overview');
  for (const [name, hash] of [
    ['issue', 'issue'],
    ['token', `token?id=${tokenId}`],
    ['deliveries', 'deliveries'],
    ['event', `events/${eventId}`],
    ['subscriptions', 'subscriptions'],
    ['verify', 'verify'],
  ] as const) {
    await open(hash);
    if (name === 'verify') await verify(page, credential);
    await shoot(name);
  }
  await page.close();
}

async function verify(page: Page, credential: object): Promise<void> {
  const buffer = Buffer.from(JSON.stringify(credential));
  const file = { name: 'bill-of-lading.json', mimeType: 'application/json', buffer };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByRole('region', { name: 'Document integrity' }).waitFor();
}

let prepared: ReturnType<typeof prepare>;

async function main(): Promise<void> {
  const path = findChromium();
  if (path === undefined) throw new Error('Chromium is not installed, or not on the PATH.');
  const folder = temporaryFolder();
  writeFileSync(join(folder.path, 'service.config.json'), JSON.stringify(GIVE_UP_SOON));
  mkdirSync(FOLDER, { recursive: true });
  const [devnet, browser] = await Promise.all([startDevnet({ folder: folder.path }), startBrowser(path)]);
  try {
    prepared = prepare(devnet);
    for (const colorScheme of ['light', 'dark'] as const) await take(devnet, browser, colorScheme);
  } finally {
    await browser.close();
    await devnet.stop();
    folder.remove();
  }
}

void main();
