import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { source as axeSource, type AxeResults } from 'axe-core';
import { chromium, type Browser, type Page } from 'playwright-core';
import { inheritedEnvironment } from '../../../service/config/config';
import { track } from '../resources';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** The Chromium of this machine; undefined if there is none. */
export function findChromium(): string | undefined {
  const folders = (inheritedEnvironment().PATH ?? '').split(delimiter);
  return folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
}

/** Starts it without a window. The caller must close it. */
export async function startBrowser(executablePath: string): Promise<Browser> {
  const browser = await chromium.launch({ executablePath, args: ['--disable-gpu'] });
  const untrack = track('a browser');
  browser.on('disconnected', untrack);
  return browser;
}

/** The serious findings of axe on a page, as text. The page must have been opened with `bypassCSP`. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run(),
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
