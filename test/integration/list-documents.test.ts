import { expect } from 'chai';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import { describeOnEngines } from '../helpers/database/engines';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';
import { AUTHORIZATION, API_KEY } from '../helpers/processes/documents-call';
import { startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';

const DOCUMENTS = 7;
const TX_HASH = `0x${'12'.repeat(32)}`;
/** When the first document was made; the others follow, a second apart. */
const START = Date.parse('2026-05-01T12:00:00Z');
/** More than one page looks at. */
const GAP = 6_000;

describeOnEngines(
  'GET /documents',
  (on) => {
    let journal: Journal;
    let app: RunningHttpApp;
    let now = START;
    /** The tokens in the order in which they were made. */
    const tokens: string[] = [];

    before(async () => {
      journal = createDatabaseJournal(on.database, SCOPE, { now: () => now });
      for (; tokens.length < DOCUMENTS; now += 1_000) {
        const document = preparedDocument(10);
        await journal.add(document);
        tokens.push(document.tokenId);
      }
      await journal.mined(tokens[1] ?? '', mintedBy(TX_HASH), false);
      await journal.failed(tokens[2] ?? '', { code: 'MINT_REVERTED', message: 'no gas' });
      app = await startHttpApp({ apiKey: API_KEY, issuedDocuments: journal });
    });

    const get = (query: string, headers: Record<string, string> = AUTHORIZATION): Promise<Response> =>
      fetch(`${app.url}/documents${query}`, { headers });

    /** Follows the header Link from page to page. Returns the pages. */
    async function pages(query: string): Promise<{ tokenId: string }[][]> {
      const all: { tokenId: string }[][] = [];
      for (let next: string | undefined = query; next !== undefined;) {
        const response = await get(next);
        expect(response.status, next).to.equal(200);
        all.push((await response.json()) as { tokenId: string }[]);
        const before = next;
        next = /<\/documents(\?[^>]*)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1];
        expect(next, 'a page after itself').not.to.equal(before);
      }
      return all;
    }

    const tokensOf = async (query: string): Promise<string[]> =>
      (await pages(query)).flat().map(({ tokenId }) => tokenId);

    it('lists every document once, newest first, on pages of any size', async () => {
      const newestFirst = [...tokens].reverse();
      for (const limit of [1, 2, 3, DOCUMENTS, 100]) {
        const listed = await pages(`?limit=${limit}`);
        expect(listed.flat().map(({ tokenId }) => tokenId)).to.deep.equal(newestFirst);
        for (const page of listed) expect(page.length).to.be.at.most(limit);
      }
    });

    it('lists documents once that were added at the same time', async () => {
      const { db } = on.database;
      const rows = await db.selectFrom('issuances').select(['token_id', 'position']).execute();
      const all = db.updateTable('issuances');
      await all.set({ position: 2 }).where('token_id', 'in', tokens.slice(1, 5)).execute();
      for (const limit of [1, 2, 3])
        expect((await tokensOf(`?limit=${limit}`)).sort()).to.deep.equal([...tokens].sort());
      for (const { token_id, position } of rows)
        await all.set({ position }).where('token_id', '=', token_id).execute();
    });

    it('shows the state, the time, the mint and the failure, and no document', async () => {
      const listed = (await pages('')).flat();
      const [mined, failed] = [1, 2].map((index) => listed.find(({ tokenId }) => tokenId === tokens[index]));
      const told = { state: 'mined', txHash: TX_HASH, createdAt: '2026-05-01T12:00:01.000Z' };
      expect(mined).to.include({ ...told, blNumber: 'SGCNM21566325' });
      const members = ['tokenId', 'id', 'blNumber', 'owner', 'holder', 'state', 'createdAt', 'txHash'];
      expect(mined).to.have.all.keys(members);
      const failure = { code: 'MINT_REVERTED', message: 'no gas' };
      expect(failed).to.deep.include({ state: 'failed', failure });
    });

    it('selects by state and by time', async () => {
      expect(await tokensOf('?state=mined')).to.deep.equal([tokens[1]]);
      expect(await tokensOf('?state=failed&limit=1')).to.deep.equal([tokens[2]]);
      expect(await tokensOf('?state=final')).to.deep.equal([]);
      expect(await tokensOf('?since=2026-05-01T12:00:05Z')).to.deep.equal([tokens[6], tokens[5]]);
      expect(await tokensOf('?until=2026-05-01T14:00:01%2B02:00')).to.deep.equal([tokens[0]]);
      const between = '?since=2026-05-01T12:00:02.000Z&until=2026-05-01T12:00:04Z&limit=1';
      expect(await tokensOf(between)).to.deep.equal([tokens[3], tokens[2]]);
    });

    it('goes on beyond documents that are not selected, and that were removed', async () => {
      const positions = on.database.db.updateTable('issuances');
      await positions
        .set((eb) => ({ position: eb('position', '+', GAP) }))
        .where('token_id', 'in', tokens.slice(3))
        .execute();
      const all = await pages('');
      expect(all.flat().map(({ tokenId }) => tokenId)).to.deep.equal([...tokens].reverse());
      expect(all).to.have.length(2);
      expect(await tokensOf('?state=mined')).to.deep.equal([tokens[1]]);
    });

    it('does not list documents of another issuer', async () => {
      const scope = { ...SCOPE, issuer: 'did:web:other.example' };
      await createDatabaseJournal(on.database, scope, { now: () => now }).add(preparedDocument(10));
      expect(await tokensOf('')).to.have.length(DOCUMENTS);
    });

    for (const [query, problem] of Object.entries({
      '?limit=0': /^The parameter limit /,
      '?limit=101': /^The parameter limit /,
      '?state=lost': /^The parameter state must be one of signed, /,
      '?since=yesterday': /^The parameter since must be a time such as /,
      '?since=2026-13-01T00:00:00Z': /^The parameter since /,
      '?until=2026-05-01': /^The parameter until /,
      '?since=2026-02-30T00:00:00Z': /^The parameter since must be a time such as /,
      '?until=2027-02-29t00:00:00%2B01:00': /^The parameter until /,
      '?since=2026-05-01T24:00:00Z': /^The parameter since /,
      '?from=2026-05-01T00:00:00Z': /^The parameter from is not known: leave it out, or write one of state, /,
      '?After=1.': /^The parameter After is not known/,
      '?after=%00': /^The parameter after has the character NUL/,
      '?after=7': /^The parameter after must be taken from the header Link/,
      '?state=mined&state=final': /^The parameter state is there twice/,
    }))
      it(`answers 400, naming the parameter, for ${query}`, async () => {
        const response = await get(query);
        const { error } = (await response.json()) as { error: { message: string } };
        expect(response.status).to.equal(400);
        expect(response.headers.get('X-Error-Code')).to.equal('QUERY_INVALID');
        expect(error.message).to.match(problem);
      });

    it('requires the API key, as GET /documents/{tokenId} does, and neither exists without one', async () => {
      await using open = await startHttpApp({ issuedDocuments: journal });
      for (const path of ['', `/${tokens[1]}`]) {
        expect((await get(path, {})).status).to.equal(401);
        // 429: the one before it was wrong too.
        expect((await get(path, { Authorization: 'Bearer wrong' })).status).to.be.oneOf([401, 429]);
        const { status, headers } = await fetch(`${open.url}/documents${path}`);
        expect([status, headers.get('X-Error-Code')]).to.deep.equal([404, 'NOT_FOUND']);
      }
      expect((await get(`/${tokens[1]}`)).status).to.equal(200);
      const unknown = await get(`/${'0'.repeat(64)}`);
      expect([unknown.status, unknown.headers.get('X-Error-Code')]).to.deep.equal([404, 'DOCUMENT_UNKNOWN']);
      expect(await unknown.text()).to.contain('No document was issued here with this token id');
    });
  },
  { isSharedByTests: true },
);
