import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { source as axeSource, type AxeResults } from 'axe-core';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import type { Devnet } from '../../../devnet/start-devnet';
import { inheritedEnvironment } from '../../../service/config/config';
import { runningDevnet } from '../processes/running-devnet';
import { owned } from '../resources';
import { temporaryFolder } from '../temporary-folder';

/** A receiver that refuses gets 50 attempts in a moment, and then the event is a dead letter. */
const GIVE_UP_SOON = { webhook: { retry: { initialDelayMs: 1, maxDelayMs: 1, giveUpAfterMs: 0 } } };
const PATIENCE_MS = 10_000;
/** In each page: its pauses are a quarter as long. */
const HASTEN = `
  for (const name of ['setTimeout', 'setInterval']) {
    const real = window[name];
    window[name] = (work, ms = 0, ...given) => real(work, ms / 4, ...given);
  }`;

/** Logs in to look only. */
export const CONSOLE_READ_KEY = 'the-read-key-of-the-console-0123456789';

/** A devnet whose console is open in a browser. */
export interface ConsoleInBrowser {
  devnet: Devnet;
  errors: PageErrors;
  /** Messages of dialogs that a script of a page opened. */
  alerts: readonly string[];
  /** Opens the console where nobody is logged in: a page of its own, with its own cookies. */
  newPage(this: void, options?: BrowserContextOptions): Promise<Page>;
  /** Logs in with a key, on such a page or on this one. */
  logIn(this: void, key: string, on?: BrowserContextOptions | Page): Promise<Page>;
  /** Shows the page of this hash, for example `token?id=1`. */
  open(this: void, page: Page, hash: string): Promise<void>;
}

/** Starts it. Undefined if this machine has no Chromium. */
export async function startConsoleInBrowser(): Promise<ConsoleInBrowser | undefined> {
  const path = findChromium();
  if (path === undefined) {
    console.log('      Chromium is not installed');
    return undefined;
  }
  const folder = temporaryFolder();
  writeFileSync(join(folder.path, 'service.config.json'), JSON.stringify(GIVE_UP_SOON));
  const [devnet, browser] = await Promise.all([
    runningDevnet({ folder: folder.path }, { CONSOLE_READ_KEY, WALLET_LOGIN: 'true' }),
    startBrowser(path),
  ]);
  const errors = collectPageErrors();
  const alerts: string[] = [];
  const open = async (page: Page, hash: string): Promise<void> => {
    await page.goto(`${devnet.serviceUrl}/console#/${hash}`);
  };
  const newPage = async (options?: BrowserContextOptions): Promise<Page> => {
    const context = await browser.newContext({ acceptDownloads: true, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    await context.addInitScript(HASTEN);
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
  const logIn = async (key: string, on?: BrowserContextOptions | Page): Promise<Page> => {
    const page = on && 'goto' in on ? on : await newPage(on);
    await page.getByLabel('Key').fill(key);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    return page;
  };
  return { devnet, errors, alerts, newPage, logIn, open };
}

/** Chooses a file with this credential on the page. */
export async function chooseCredential(page: Page, credential: unknown): Promise<void> {
  const buffer = Buffer.from(JSON.stringify(credential));
  const file = { name: 'credential.json', mimeType: 'application/json', buffer };
  await page.getByLabel('Credential file').setInputFiles(file);
}

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** The Chromium of this machine; undefined if there is none. */
function findChromium(): string | undefined {
  const folders = (inheritedEnvironment().PATH ?? '').split(delimiter);
  return folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
}

/**
 * The address bar loads two pages of its own into each window, which no test shows: half of the browser's
 * processor time. The others are those of Playwright's list, which this one replaces, that the tests rely on.
 */
const DISABLED = [
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'PaintHolding'],
];

/** Starts it without a window. */
async function startBrowser(executablePath: string): Promise<Browser> {
  const args = ['--disable-gpu', `--disable-features=${DISABLED.join()}`];
  return owned('a browser', await chromium.launch({ executablePath, args }), 'close');
}

/**
 * The serious findings of axe on a page, light and dark, as text. Axe runs in a world of its own, so that the
 * policy of the page stays in force.
 */
export async function seriousFindings(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  try {
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', {
      frameId: frameTree.frame.id,
    });
    const findings: string[] = [];
    for (const [colorScheme, expression] of [
      // A rule that holds is reported with one element instead of all.
      ['light', `${axeSource}; axe.run({ resultTypes: ['violations'] });`],
      // Only the colours differ.
      ['dark', `axe.run({ resultTypes: ['violations'], runOnly: ['color-contrast'] });`],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      const how = { contextId, awaitPromise: true, returnByValue: true };
      const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, ...how });
      if (exceptionDetails) throw new Error(`axe failed: ${exceptionDetails.text}`);
      const { violations } = result.value as AxeResults;
      for (const { id, nodes, impact } of violations)
        if (impact === 'serious' || impact === 'critical')
          findings.push(`${colorScheme}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    }
    return findings;
  } finally {
    await session.detach();
  }
}

/** Errors of pages: uncaught ones, and what the browser logs as errors, such as violations of the policy. */
interface PageErrors {
  /** Notes the errors of this page from now on. */
  watch(this: void, page: Page): void;
  /** Names an error that the test provokes, as `unexpected` would name it. */
  provoke(this: void, error: string): void;
  /** Names errors that depend on the moment. */
  tolerate(this: void, errors: RegExp): void;
  /** The errors that no test provoked: the path of what failed, and the browser's words. */
  unexpected(this: void): string[];
  /** Provoked errors that did not happen. */
  missing(this: void): string[];
}

/** Begins without any. */
function collectPageErrors(): PageErrors {
  const [seen, provoked]: [string[], string[]] = [[], []];
  const tolerated: RegExp[] = [];
  return {
    watch(page) {
      page.on('pageerror', (error) => seen.push(String(error.stack ?? error)));
      page.on('console', (message) => {
        if (message.type() !== 'error') return;
        const { url } = message.location();
        seen.push(`${URL.canParse(url) ? `${new URL(url).pathname}: ` : ''}${message.text()}`);
      });
    },
    provoke: (error) => void provoked.push(error),
    tolerate: (errors) => void tolerated.push(errors),
    unexpected: () =>
      seen.filter((error) => !provoked.includes(error) && !tolerated.some((one) => one.test(error))),
    missing: () => provoked.filter((error) => !seen.includes(error)),
  };
}

/** Chromium's words for an answer that is no success. */
export function answeredError(path: string, status: string): string {
  return `${path}: Failed to load resource: the server responded with a status of ${status}`;
}

/** Chromium's words for a request that a test aborted. */
export function abortedError(path: string): string {
  return `${path}: Failed to load resource: net::ERR_FAILED`;
}
