import { expect } from 'chai';
import type { Holder } from '../../service/access/access-keys';
import type { Answers } from '../../service/answers/answers';
import { createSessions } from '../../service/console/sessions';
import { openConsolePage, type ConsolePage } from '../helpers/processes/console-page';
import { startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';

const KEY = 'the-admin-key-of-the-console-0123456789';
const BEARER = { Authorization: `Bearer ${KEY}` };

/** Finds the holder of any key with a scope, who has the name of the key. */
async function find(key: string): Promise<Holder> {
  return { name: key, owner: key, expiresAt: Infinity, filters: [], may: ['read'] };
}

describe('the list of deliveries', () => {
  let service: RunningHttpApp;
  let pages: ConsolePage[];
  let asked: string[];
  let revision: string;
  let failure: Error | undefined;

  const deliveries = async ({ states = ['every'] }: { states?: string[] }, holder?: Holder) => {
    asked.push(...(holder ? [holder.owner] : states));
    await new Promise((resolve) => setImmediate(resolve));
    if (failure) throw failure;
    return { deliveries: [{ id: `${asked.length}` }], next: { event: 28, channel: 3 } };
  };

  beforeEach(async () => {
    [asked, revision, failure] = [[], 'first', undefined];
    const sessions = createSessions({ operator: KEY, reader: undefined }, [], {
      clock: Date,
      sealingKey: new Uint8Array(32),
      accessKeys: { find },
    });
    const console = { sessions, overview: async () => ({ revision }) };
    const answers = { deliveries } as unknown as Answers;
    service = await startHttpApp({ adminApiKey: KEY, answers, console: console as never });
    pages = [openConsolePage(service.url), openConsolePage(service.url)];
    for (const page of pages) await page.logIn(KEY);
  });
  afterEach(() => service.close());

  const all = async (path = '/deliveries') =>
    Promise.all(pages.map(async (page) => page.call<{ id: string }[]>('GET', path)));

  it('is read once for all pages until the revision changes', async () => {
    for (const { status, headers, body } of [...(await all()), ...(await all())]) {
      expect([status, body]).to.deep.equal([200, [{ id: '1' }]]);
      expect(headers.get('Content-Type')).to.match(/^application\/json/);
      expect(headers.get('Link')).to.match(/^<\/deliveries\?after=[\w-]{80,}&limit=\d+>; rel="next"$/);
    }
    await all('/deliveries?state=dead');
    expect(asked).to.deep.equal(['every', 'dead']);
    expect(
      new Set(service.log.filter(({ path }) => path === '/deliveries').map(({ level }) => level)),
    ).to.deep.equal(new Set(['debug']));
    revision = 'second';
    expect((await all()).map(({ body }) => body)).to.deep.equal([[{ id: '3' }], [{ id: '3' }]]);
  });

  it('is read for each request of a holder, who sees another part than the next one', async () => {
    for (const [at, page] of pages.entries()) {
      await page.logIn(String(at).repeat(36));
      await page.call('GET', '/deliveries');
    }
    await all();
    expect(asked.map(([first]) => first).sort()).to.deep.equal(['0', '0', '1', '1']);
  });

  it('is read for each request with a key', async () => {
    for (let time = 1; time <= 2; time++) {
      const answer = await fetch(`${service.url}/deliveries`, { headers: BEARER });
      expect(await answer.json()).to.deep.equal([{ id: `${time}` }]);
    }
  });

  it('is read again by pages after it could not be read', async () => {
    failure = new Error('the database does not answer');
    expect((await all()).map(({ status }) => status)).to.deep.equal([500, 500]);
    failure = undefined;
    const before = asked.length;
    expect((await all()).map(({ status }) => status)).to.deep.equal([200, 200]);
    expect(asked).to.have.length(before + 1);
  });
});
