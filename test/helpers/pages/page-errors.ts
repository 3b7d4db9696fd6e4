import type { Page } from 'playwright-core';

/** Errors of pages: uncaught ones, and what the browser logs as errors, such as violations of the policy. */
export interface PageErrors {
  /** Notes the errors of this page from now on. */
  watch(this: void, page: Page): void;
  /** Names an error that the test provokes, as `unexpected` would name it. */
  provoke(this: void, error: string | RegExp): void;
  /** Names errors that depend on the moment. */
  tolerate(this: void, errors: RegExp): void;
  /** The errors that no test provoked: the path of what failed, and the browser's words. */
  unexpected(this: void): string[];
  /** Provoked errors that did not happen. */
  missing(this: void): string[];
}

/** Begins without any. */
export function collectPageErrors(): PageErrors {
  const seen: string[] = [];
  const provoked: (string | RegExp)[] = [];
  const tolerated: RegExp[] = [];
  const isOne = (error: string, one: string | RegExp): boolean =>
    typeof one === 'string' ? one === error : one.test(error);
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
    unexpected: () => seen.filter((error) => ![...provoked, ...tolerated].some((one) => isOne(error, one))),
    missing: () => provoked.filter((one) => !seen.some((error) => isOne(error, one))).map(String),
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
