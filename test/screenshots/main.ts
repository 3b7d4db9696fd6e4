import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Devnet } from '../../devnet/start-devnet';
import { PROJECT_ROOT } from '../../service/base/project-root';
import {
  chooseCredential,
  startConsoleInBrowser,
  type ConsoleInBrowser,
} from '../helpers/pages/console-in-browser';
import { stopAll } from '../helpers/resources';

// `npm run screenshots` makes the pictures of docs/console.md: each page of the console, light and dark.

const FOLDER = join(PROJECT_ROOT, 'docs/console');
/** So long a token is transferred to and fro, for the plots. */
const BUSY_MS = 60_000;
const FILTERED = {
  protocol: 'HTTP',
  types: ['com.service.etr.nomination', 'com.service.etr.beneficiary_transfer'],
};

/** A token with a life, a filtered subscription, a key, a busy minute, and an event that is not delivered. */
async function prepare(devnet: Devnet): Promise<{ tokenId: string; credential: object; eventId: string }> {
  await post(devnet, '/subscriptions', { ...FILTERED, sink: devnet.receiverUrl });
  const parties = [`eip155:${devnet.chainId}:${devnet.accounts[1]}`];
  const terms = { scope: { parties }, may: ['read', 'subscribe'], expiresAt: '2099-12-31T23:59:59Z' };
  await post(devnet, '/keys', { name: 'Bank', ...terms });
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

async function post({ serviceUrl, adminApiKey }: Devnet, path: string, content: object): Promise<void> {
  const body = JSON.stringify(content);
  const headers = { authorization: `Bearer ${adminApiKey}`, 'content-type': 'application/json' };
  const { status } = await fetch(serviceUrl + path, { method: 'POST', headers, body });
  if (status !== 201) throw new Error(`POST ${path} answered ${status}.`);
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

async function take(
  { devnet, logIn, open }: ConsoleInBrowser,
  colorScheme: 'light' | 'dark',
  { tokenId, credential, eventId }: Awaited<ReturnType<typeof prepare>>,
): Promise<void> {
  const page = await logIn(devnet.adminApiKey, { colorScheme, viewport: { width: 1280, height: 1200 } });
  for (const [name, hash] of [
    ['overview', 'overview'],
    ['issue', 'issue'],
    ['token', `token?id=${tokenId}`],
    ['deliveries', 'deliveries'],
    ['event', `events/${eventId}`],
    ['subscriptions', 'subscriptions'],
    ['keys', 'keys'],
    ['verify', 'verify'],
  ] as const) {
    await open(page, hash);
    if (name === 'verify') {
      await chooseCredential(page, credential);
      await page.getByRole('region', { name: 'Document integrity' }).waitFor();
    }
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.mouse.move(0, 0);
    // The first figures come within a second.
    await page.waitForTimeout(1_500);
    await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}.png`) });
  }
  await page.context().close();
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const inBrowser = await startConsoleInBrowser();
  if (inBrowser === undefined) throw new Error('Chromium is not installed, or not on the PATH.');
  try {
    const prepared = await prepare(inBrowser.devnet);
    for (const colorScheme of ['light', 'dark'] as const) await take(inBrowser, colorScheme, prepared);
  } finally {
    await stopAll();
  }
}

void main();
