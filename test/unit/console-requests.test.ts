import { expect } from 'chai';
import type { createApi } from '../../console/requests/api';
import { stopLater } from '../helpers/resources';

/** Only the compiler of console/ knows the types of a browser, which this module needs. */
const MODULE: string = '../../console/requests/api';

describe('the requests of the console', () => {
  const { signal } = new AbortController();
  let api: ReturnType<typeof createApi>;
  let asked: { path: string; headers: Headers }[];
  /** Entries of each page. Undefined: there is no page after it. */
  let pages: (number | undefined)[];

  before(async () => {
    const module = (await import(MODULE)) as { createApi: typeof createApi };
    api = module.createApi(() => undefined);
    const { fetch } = globalThis;
    stopLater('fetch', () => (globalThis.fetch = fetch));
  });
  beforeEach(() => {
    [asked, pages] = [[], []];
    globalThis.fetch = async (path, options) => {
      asked.push({ path: path as string, headers: new Headers(options?.headers) });
      const entries = Array.from({ length: pages.shift() ?? 0 }, () => ({}));
      const headers = pages.length > 0 ? { Link: `</next?${asked.length}>; rel="next"` } : undefined;
      return new Response(JSON.stringify(entries), headers && { headers });
    };
  });

  const shown = async (): Promise<[number, boolean, number]> => {
    const { entries, hasMore } = await api.deliveries({}, 200, signal);
    return [entries.length, hasMore, asked.length];
  };

  it('look at three pages of deliveries at most, and say that others may follow', async () => {
    pages = [0, 1, 0, 100];
    expect(await shown()).to.deep.equal([1, true, 3]);
    expect(asked.map(({ path }) => path)).to.deep.equal(['/deliveries?limit=100', '/next?1', '/next?2']);
  });

  it('end with the last page, and with as many deliveries as are shown', async () => {
    pages = [1, 2];
    expect(await shown()).to.deep.equal([3, false, 2]);
    [asked, pages] = [[], [100, 100, 1]];
    expect(await shown()).to.deep.equal([200, true, 2]);
  });

  it('list all subscriptions', async () => {
    pages = [100, 100, 100, 100, 7];
    expect(await api.subscriptions(signal)).to.have.length(407);
  });

  it('send every id of a credential in a header, whatever its characters', async () => {
    for (const credentialId of ['urn:uuid:01a20301', 'https://x.example/é%20 ☃', 'x'.repeat(600)]) {
      asked = [];
      await api.token({ tokenId: '1', credentialId }, signal);
      const [{ path, headers } = { path: '', headers: new Headers() }] = asked;
      expect(decodeURIComponent(headers.get('X-Credential-Id') ?? '')).to.equal(credentialId);
      expect(path).to.equal('/tokens/1?');
    }
    await api.token({ tokenId: '1' }, signal);
    expect(asked.at(-1)?.headers.has('X-Credential-Id')).to.equal(false);
  });
});
