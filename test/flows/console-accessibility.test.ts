import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import type { Devnet } from '../../devnet/start-devnet';
import type { Issued } from '../../devnet/service';
import { newDeferred } from '../../service/base/waiting';
import { seriousFindings } from '../helpers/pages/browser';
import {
  chooseCredential,
  startConsoleInBrowser,
  type ConsoleInBrowser,
} from '../helpers/pages/console-in-browser';
import { abortedError, answeredError } from '../helpers/pages/page-errors';

/** Narrow, as a telephone is. */
const NARROW = { width: 360, height: 740 };
/** The width of a page that its window does not show. A part of the window is kept for the scroll bar. */
const HIDDEN_WIDTH = 'document.documentElement.scrollWidth - document.documentElement.offsetWidth';
/** More than any page has before its content. */
const MOST_TABS = 40;

describe('the console for everybody', function () {
  this.timeout(60_000);
  let inBrowser: ConsoleInBrowser | undefined;
  let own: ConsoleInBrowser;
  let devnet: Devnet;
  let page: Page;
  /** A page that gets keys only. */
  let typist: Page;
  let issued: Issued;

  before(async function () {
    inBrowser = await startConsoleInBrowser();
    if (inBrowser === undefined) return this.skip();
    own = inBrowser;
    devnet = own.devnet;
    page = await own.logIn(devnet.adminApiKey);
    await page.setViewportSize(NARROW);
    typist = await own.newPage();
    issued = await devnet.issue(undefined, { remarks: 'shipped on board' });
    await devnet.transferHolder(issued.tokenId, { to: 2, remark: 'for collection' });
    await devnet.webhooks.next({ tokenId: issued.tokenId, type: 'holder_transfer' });
    devnet.receiver.refuse(500);
    await devnet.nominate(issued.tokenId, { to: 3 });
  });

  after(() => inBrowser?.stop());

  const show = async (hash: string, content: Locator): Promise<void> => {
    await own.open(page, hash);
    await content.first().waitFor();
  };
  const verify = async (credential: unknown, outcome: string): Promise<void> => {
    await show('verify', page.getByLabel('Or paste the credential'));
    await chooseCredential(page, credential);
    const integrity = page.getByRole('region', { name: 'Document integrity' });
    await integrity.getByText(outcome, { exact: true }).first().waitFor();
  };

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

  /** How each page comes to its content. */
  const PAGES: Readonly<Record<string, () => Promise<void>>> = {
    'the overview': () => show('overview', page.getByText('Mined, not final')),
    'the form of a document': () => show('issue', page.getByLabel('Bill of Lading number')),
    async 'the form with problems'() {
      await show('issue', page.getByLabel('Bill of Lading number'));
      await page.getByLabel('Bill of Lading number').fill('');
      await page.getByLabel('Vessel').fill('PO_:123');
      await page.getByRole('button', { name: 'Issue', exact: true }).click();
      await page.getByText('2 problems to solve first').waitFor();
    },
    'the question for a token': () => show('token', page.getByText('Hexadecimal or decimal digits.')),
    async 'a token with remarks and deliveries'() {
      await show('token', page.getByText('Hexadecimal or decimal digits.'));
      await chooseCredential(page, issued.document);
      await page.getByText('shipped on board').waitFor();
      const nomination = page.getByRole('listitem').filter({ hasText: 'Nominee' });
      await nomination.getByText('dead letter').first().waitFor();
    },
    'the deliveries': () => show('deliveries', page.getByText('Last answer')),
    async 'an event with its attempts'() {
      await show('deliveries?state=dead', page.getByRole('link', { name: 'nomination' }));
      await page.getByRole('link', { name: 'nomination' }).click();
      const attempts = page.getByRole('table', { name: 'Attempts for the subscription default' });
      await attempts.getByText('500', { exact: true }).first().waitFor();
    },
    'the subscriptions': () => show('subscriptions', page.getByRole('link', { name: 'Show its deliveries' })),
    async 'the dialog of a new subscription'() {
      await show('subscriptions', page.getByRole('link', { name: 'Show its deliveries' }));
      await page.getByRole('button', { name: 'Create a subscription' }).click();
      await page.getByRole('dialog').getByLabel('Sink').waitFor();
    },
    'the question for a credential': () => show('verify', page.getByLabel('Or paste the credential')),
    'a valid credential': () => verify(issued.document, 'valid'),
    'an invalid credential': () =>
      verify(
        { ...issued.document, credentialSubject: { ...issued.document.credentialSubject, blNumber: '2' } },
        'invalid',
      ),
  };

  /** Checks what a page shows, light and dark. */
  async function expectGood(shown: Page): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await shown.emulateMedia({ colorScheme });
      expect(await seriousFindings(shown), colorScheme).to.deep.equal([]);
      expect(await shown.evaluate(HIDDEN_WIDTH), colorScheme).to.equal(0);
      for (const dialog of await shown.getByRole('dialog').all()) {
        const { x, width: own } = (await dialog.boundingBox()) ?? { x: 0, width: 0 };
        expect([x >= 0, x + own <= NARROW.width], colorScheme).to.deep.equal([true, true]);
      }
    }
  }

  for (const [name, show] of Object.entries(PAGES))
    it(`has no serious finding of axe, and fits a narrow window: ${name}`, async () => {
      await show();
      await expectGood(page);
      await page.reload();
    });

  it('has no serious finding of axe, and fits a narrow window: the log-in', async () => {
    const stranger = await own.newPage();
    await stranger.setViewportSize(NARROW);
    await expectGood(stranger);
    own.errors.provoke(answeredError('/console/api/session', '401 (Unauthorized)'));
    await stranger.getByLabel('Key').fill('wrong');
    await stranger.getByRole('button', { name: 'Log in' }).click();
    await stranger.getByText('CONSOLE_KEY_WRONG').waitFor();
    await expectGood(stranger);
    await stranger.context().close();
  });

  it('has no serious finding of axe, and fits a narrow window: the overview of a lost service', async () => {
    let isLost = false;
    await page.route('**/console/api/overview', async (route) => {
      if (isLost) return route.abort();
      // A 304 would leave the problems of an earlier answer on the page.
      const response = await route.fetch({ headers: { ...route.request().headers(), 'if-none-match': '' } });
      return route.fulfill({ response, json: { ...((await response.json()) as object), problems: [] } });
    });
    await show('overview', page.getByText('All is well.'));
    own.errors.provoke(abortedError('/console/api/overview'));
    isLost = true;
    await page.getByText('Not known: the service does not answer.').waitFor();
    await expectGood(page);
    await page.unrouteAll();
    await page.reload();
  });

  it('logs in and shows a token with the keyboard alone', async () => {
    await tabTo(typist.getByLabel('Key'));
    await typist.keyboard.type(devnet.adminApiKey);
    await press('Enter');
    await typist.getByText('Mined, not final').waitFor();
    await follow('Token', 'Tab');
    const id = typist.getByLabel('Token id');
    await press('Tab');
    await focused(id).waitFor();
    await typist.keyboard.type(issued.tokenId);
    await press('Enter');
    await typist.getByRole('listitem').filter({ hasText: 'Holder transferred' }).first().waitFor();
    await focused(id).waitFor();
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

  it('shows the dead letters with the keyboard alone', async () => {
    await follow('Deliveries', 'Shift+Tab');
    await tabTo(typist.getByLabel('State'));
    for (const value of ['waiting', 'failed', 'dead']) {
      await press('ArrowDown');
      await typist.waitForURL(`**#/deliveries?state=${value}`);
    }
    await tabTo(link('nomination'));
    await press('Enter');
    await typist.getByRole('button', { name: 'Deliver again' }).waitFor();
  });

  it('opens a dialog with the keyboard alone, and closes it with Escape', async () => {
    await follow('Subscriptions', 'Shift+Tab');
    const button = typist.getByRole('button', { name: 'Create a subscription' });
    const dialog = typist.getByRole('dialog', { name: 'Create a subscription' });
    for (const key of ['Enter', 'Space']) {
      await tabTo(button);
      await press(key);
      await focused(dialog.getByLabel('Sink')).waitFor();
      const nomination = dialog.getByLabel('nomination', { exact: true });
      await tabTo(nomination);
      await press('Space');
      expect(await nomination.isChecked()).to.equal(true);
      await press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await focused(button).waitFor();
    }
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
    await tabTo(typist.getByRole('button', { name: 'Create a subscription' }));
    await press('Enter');
    await focused(dialog.getByLabel('Sink')).waitFor();
    await typist.keyboard.type('http://127.0.0.1:1/');
    await press('Enter');
    await dialog.getByRole('button', { name: 'Creating …' }).waitFor();
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

  it('had no other errors than those of the tests before, and violated no policy', () => {
    expect([own.errors.unexpected(), own.errors.missing()]).to.deep.equal([[], []]);
  });
});
