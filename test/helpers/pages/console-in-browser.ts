import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import type { Devnet } from '../../../devnet/start-devnet';
import { runningDevnet } from '../processes/running-devnet';
import { temporaryFolder } from '../temporary-folder';
import { findChromium, startBrowser } from './browser';
import { collectPageErrors, type PageErrors } from './page-errors';

/** A receiver that refuses gets 50 attempts in a moment, and then the event is a dead letter. */
const GIVE_UP_SOON = { webhook: { retry: { initialDelayMs: 1, maxDelayMs: 1, giveUpAfterMs: 0 } } };
const PATIENCE_MS = 10_000;

/** Logs in to look only. */
export const CONSOLE_READ_KEY = 'the-read-key-of-the-console-0123456789';

/** A devnet whose console is open in a browser. */
export interface ConsoleInBrowser {
  devnet: Devnet;
  errors: PageErrors;
  /** Messages of dialogs that a script of a page opened. */
  alerts: readonly string[];
  /** Opens the console where nobody is logged in: a page of its own, with its own cookies. */
  newPage(this: void): Promise<Page>;
  /** Such a page, logged in with a key. */
  logIn(this: void, key: string): Promise<Page>;
  /** Shows the page of this hash, for example `token?id=1`. */
  open(this: void, page: Page, hash: string): Promise<void>;
  stop(this: void): Promise<void>;
}

/** Starts it. The test must stop it. Undefined if this machine has no Chromium. */
export async function startConsoleInBrowser(): Promise<ConsoleInBrowser | undefined> {
  const path = findChromium();
  if (path === undefined) {
    console.log('      Chromium is not installed');
    return undefined;
  }
  const folder = temporaryFolder();
  writeFileSync(join(folder.path, 'service.config.json'), JSON.stringify(GIVE_UP_SOON));
  const starting = [
    runningDevnet({ folder: folder.path }, { CONSOLE_READ_KEY }),
    startBrowser(path),
  ] as const;
  const stop = async (): Promise<void> => {
    const [devnet, browser] = await Promise.allSettled(starting);
    if (browser.status === 'fulfilled') await browser.value.close();
    if (devnet.status === 'fulfilled') await devnet.value.stop();
    folder.remove();
  };
  try {
    const [devnet, browser] = await Promise.all(starting);
    const errors = collectPageErrors();
    const alerts: string[] = [];
    const open = async (page: Page, hash: string): Promise<void> => {
      await page.goto(`${devnet.serviceUrl}/console#/${hash}`);
    };
    const newPage = async (): Promise<Page> => {
      const context = await browser.newContext({ acceptDownloads: true });
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      errors.watch(page);
      page.on('dialog', (dialog) => {
        // The form asks before a page with a draft is left.
        if (dialog.type() === 'beforeunload') return void dialog.accept();
        alerts.push(dialog.message());
        void dialog.dismiss();
      });
      await open(page, 'overview');
      await page.getByLabel('Key').waitFor();
      return page;
    };
    const logIn = async (key: string): Promise<Page> => {
      const page = await newPage();
      await page.getByLabel('Key').fill(key);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      return page;
    };
    return { devnet, errors, alerts, newPage, logIn, open, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Chooses a file with this credential on the page. */
export async function chooseCredential(page: Page, credential: unknown): Promise<void> {
  const buffer = Buffer.from(JSON.stringify(credential));
  const file = { name: 'credential.json', mimeType: 'application/json', buffer };
  await page.getByLabel('Credential file').setInputFiles(file);
}
