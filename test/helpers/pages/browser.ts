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

/**
 * The serious findings of axe on a page, as text. Axe runs in a world of its own, so that the policy of the
 * page stays in force.
 */
export async function seriousFindings(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  try {
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', {
      frameId: frameTree.frame.id,
    });
    const expression = `${axeSource}; axe.run();`;
    const how = { contextId, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, ...how });
    if (exceptionDetails) throw new Error(`axe failed: ${exceptionDetails.text}`);
    const { violations } = result.value as AxeResults;
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  } finally {
    await session.detach();
  }
}
