import { expect } from 'chai';
import type { SubscriptionRoutes } from '../../service/http/routes/subscriptions';
import { eventually } from '../helpers/eventually';
import { accepting, mintedDocument, startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';
import { API_KEY, AUTHORIZATION } from '../helpers/processes/documents-call';
import { createRequest, rawCreate, rawRequest, type RawRequest } from '../helpers/processes/raw-request';

const MOST = 3;
const ADMIN_API_KEY = 'the key of the admin';
const FETCHING: Pick<SubscriptionRoutes, 'fetchEvents'> = {
  fetchEvents: async () => ({ events: [], cursor: 'c' }),
};

describe('POST /create with the maximum number of waiting callers', () => {
  let app: RunningHttpApp;
  let waiting: RawRequest[];
  /** Functions that finish the documents being issued. */
  let finish: (() => void)[];

  beforeEach(async () => {
    waiting = [];
    finish = [];
    app = await startHttpApp({
      callersAtOnce: MOST,
      adminApiKey: ADMIN_API_KEY,
      subscriptions: FETCHING as SubscriptionRoutes,
      issuing: accepting(async () => {
        await new Promise<void>((resolve) => finish.push(resolve));
        return mintedDocument();
      }),
    });
    for (let count = 0; count < MOST; count++) waiting.push(await create());
    await eventually('all are being issued', () => finish.length === MOST);
  });

  afterEach(() => {
    for (const { socket } of waiting) socket.destroy();
    for (const one of finish) one();
  });

  const create = (): Promise<RawRequest> => rawRequest(app.url, createRequest());

  it('answers 503 before any of the body has come; other paths answer as usual', async () => {
    const late = await rawCreate(app.url, { 'Content-Length': 60 * 1024, Connection: 'close' });
    waiting.push(late);
    await eventually('it is answered', () => late.answer() !== '');
    expect(late.answer())
      .to.match(/^HTTP\/1\.1 503 /)
      .and.contain('X-Error-Code: BUSY')
      .and.match(/\r\nRetry-After: [1-9]\d*\r\n/);
    expect((await fetch(`${app.url}/health`)).status).to.equal(200);
    expect(app.log.find(({ code }) => code === 'BUSY')).to.include({ level: 'warn', status: 503 });
  });

  it('has another limit than those who wait for events', async () => {
    const headers = { Authorization: `Bearer ${ADMIN_API_KEY}` };
    expect((await fetch(`${app.url}/events/stream?wait=1`, { headers })).status).to.equal(200);
  });

  it('accepts the next request when a waiting one is answered', async () => {
    finish[0]?.();
    await eventually('one has', () => waiting.some((one) => one.answer().startsWith('HTTP/1.1 200 ')));
    waiting.push(await create());
    await eventually('the next is being issued', () => finish.length === MOST + 1);
  });

  it('accepts the next request when a caller left, although its document is still being issued', async () => {
    waiting[0]?.socket.destroy();
    await eventually('the next is being issued', async () => {
      waiting.push(await create());
      return finish.length > MOST;
    });
  });

  it('counts requests, not connections', async () => {
    waiting[0]?.socket.destroy();
    const piped = await rawRequest(app.url, createRequest().repeat(5));
    waiting.push(piped);
    await eventually('one is let in', () => finish.length === MOST + 1);
    finish[MOST]?.();
    await eventually('the others are not', () => piped.answer().split('HTTP/1.1 503 ').length === 5);
  });
});

describe('GET /events/stream with the maximum number of requests of a caller that wait', () => {
  it('answers 429 to the next that would wait; others, and those of other paths, get theirs', async () => {
    const ends: (() => void)[] = [];
    const fetchEvents: SubscriptionRoutes['fetchEvents'] = async (_, { wait }) => {
      if (wait > 0) await new Promise<void>((resolve) => ends.push(resolve));
      return { events: [], cursor: 'c' };
    };
    await using app = await startHttpApp({
      waitsAtOnce: 2,
      adminApiKey: ADMIN_API_KEY,
      subscriptions: { fetchEvents } as SubscriptionRoutes,
      issuing: accepting(async () => mintedDocument()),
    });
    const headers = { Authorization: `Bearer ${ADMIN_API_KEY}` };
    const get = (query: string) => fetch(`${app.url}/events/stream${query}`, { headers });
    const waiting = get('?wait=1');
    await eventually('it waits', () => ends.length === 1);
    const refused = await get('?wait=1');
    const told = ['x-error-code', 'retry-after'].map((name) => refused.headers.get(name));
    expect([refused.status, ...told]).to.deep.equal([429, 'WAITS_TOO_MANY', '10']);
    expect((await get('')).status).to.equal(200);
    const created = await rawRequest(app.url, createRequest());
    await eventually('the document is', () => created.answer().startsWith('HTTP/1.1 200 '));
    created.socket.destroy();
    ends[0]?.();
    expect((await waiting).status).to.equal(200);
    await eventually('the next waits', async () => {
      void get('?wait=1').catch(() => undefined);
      return ends.length > 1;
    });
    ends[1]?.();
  });
});

describe('POST /create with Prefer: respond-async while no block is mined', () => {
  /** The limit of the service. */
  const MOST_UNMINED = 1_000;

  it('answers 503 above its limit, and 202 again once a document is mined', async () => {
    const none = async (): Promise<undefined> => undefined;
    const mine: (() => void)[] = [];
    await using app = await startHttpApp({
      apiKey: API_KEY,
      issuedDocuments: { find: none, documentOf: none, list: () => expect.fail('it is not asked') },
      issuing: accepting(async () => {
        const mint = new Promise<string>((resolve) => mine.push(() => resolve('0x01')));
        return mintedDocument(undefined, mint);
      }),
    });
    const request = createRequest({ ...AUTHORIZATION, Prefer: 'respond-async' });
    const piped = await rawRequest(app.url, request.repeat(MOST_UNMINED + 1));
    const answered = (status: number): number => piped.answer().split(`HTTP/1.1 ${status} `).length - 1;
    await eventually('one is refused', () => answered(503) === 1);
    expect(answered(202)).to.equal(MOST_UNMINED);
    expect(piped.answer())
      .to.match(/X-Error-Code: BUSY/i)
      .and.match(/503 [^]*Retry-After: [1-9]/i);
    mine[0]?.();
    await eventually('one is mined', () => app.log.some(({ msg }) => msg === 'document issued'));
    piped.socket.write(request);
    await eventually('the next is accepted', () => answered(202) === MOST_UNMINED + 1);
    piped.socket.destroy();
  });
});
