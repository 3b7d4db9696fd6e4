import { expect } from 'chai';
import { RequestError } from '../../service/base/errors';
import { keptDocument } from '../../service/issuance/issue-document';
import { preparedDocument } from '../helpers/database/prepared-documents';
import { accepting, REQUEST, startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';

describe('the header X-Error-Code', () => {
  let app: RunningHttpApp;
  let isHealthy: boolean;

  before(async () => {
    app = await startHttpApp({
      acceptDocument: accepting(() =>
        Promise.reject(new RequestError('SUBSCRIPTION_INVALID', '/a~1b/0 is wrong. Correct it.')),
      ),
      health: async () => ({ isHealthy, feeds: [], issuing: undefined }),
      metrics: {
        contentType: 'text/plain',
        text: () => Promise.reject(Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })),
      },
    });
  });

  after(() => app.close());

  const codeAt = async (path: string, init: RequestInit = {}): Promise<[number, string | null]> => {
    const { status, headers } = await fetch(app.url + path, init);
    return [status, headers.get('X-Error-Code')];
  };

  it('is INTERNAL for an error of a library, whose code is in the log', async () => {
    expect(await codeAt('/metrics')).to.deep.equal([500, 'INTERNAL']);
    expect(app.log.find(({ level }) => level === 'error')).to.include({ code: 'SQLITE_IOERR' });
  });

  it('is on an unhealthy answer of GET /health, which keeps its body, and not on a healthy one', async () => {
    isHealthy = false;
    const { status, headers, ...response } = await fetch(`${app.url}/health`).then(async (answer) => ({
      status: answer.status,
      headers: answer.headers,
      body: (await answer.json()) as object,
    }));
    expect([status, headers.get('X-Error-Code')]).to.deep.equal([503, 'UNHEALTHY']);
    expect(response.body).to.deep.equal({ status: 'failing', feeds: [] });
    isHealthy = true;
    expect(await codeAt('/health')).to.deep.equal([200, null]);
  });

  it('is on errors to HEAD too, and on no success', async () => {
    expect(await codeAt('/nothing', { method: 'HEAD' })).to.deep.equal([404, 'NOT_FOUND']);
    expect(await codeAt('/')).to.deep.equal([200, null]);
    expect(await codeAt('/nothing', { method: 'OPTIONS' })).to.deep.equal([204, null]);
  });

  it('is SUBSCRIPTION_INVALID, with 400 and the message, for a subscription that is refused', async () => {
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${app.url}/create/any`, { method: 'POST', headers, body: REQUEST });
    expect([answer.status, answer.headers.get('X-Error-Code')]).to.deep.equal([400, 'SUBSCRIPTION_INVALID']);
    expect(await answer.json()).to.deep.equal({ error: { message: '/a~1b/0 is wrong. Correct it.' } });
  });

  it('is MINT_STILL_WAITING, with 500 and the token in X-Token-Id, when a mint takes too long', async () => {
    const never = new Promise<never>(() => undefined);
    const minting = { queue: { mint: () => never }, journal: { documentOf: () => never }, waitMs: 1 };
    const prepared = preparedDocument(10);
    const issuance = { state: 'signed', txHash: undefined, failure: undefined, createdAt: 0 } as const;
    const slow = await startHttpApp({
      acceptDocument: accepting(async () =>
        keptDocument(minting, { ...prepared, ...issuance, requestHash: undefined }),
      ),
    });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${slow.url}/create/any`, { method: 'POST', headers, body: REQUEST });
    const body: unknown = await answer.json();
    await slow.close();
    expect([answer.status, body]).to.deep.equal([500, { error: { message: 'Internal server error' } }]);
    expect(answer.headers.get('X-Error-Code')).to.equal('MINT_STILL_WAITING');
    expect(answer.headers.get('X-Token-Id')).to.equal(prepared.tokenId);
  });

  const malformed = ['/create/%E0%A4%A', '/create/BILL_OF_LADING%', '/documents/%', '/nothing/%zz'];
  for (const path of [...malformed, '/documents/%00', '/subscriptions/a%00b/test'])
    it(`is PATH_MALFORMED, with 400, for the percent-encoding in ${path}`, async () => {
      expect(await codeAt(path, { method: 'POST', body: '{}' })).to.deep.equal([400, 'PATH_MALFORMED']);
    });

  it('is absent when only an unread query is malformed', async () => {
    expect(await codeAt('/?q=%E0%A4%A')).to.deep.equal([200, null]);
  });
});
