import crypto from 'node:crypto';
import { mock } from 'node:test';
import Koa from 'koa';
import { expect } from 'chai';
import { createLogger } from '../../service/base/logger';
import { createGate } from '../../service/http/gate';
import { errors } from '../../service/http/middleware/errors';
import type { RequestState } from '../../service/http/middleware/request-log';
import { listen, type HttpServer } from '../../service/http/server';

const KEY = 'correct-horse';

describe('endpoints of the admin', () => {
  let server: HttpServer;
  const call = (headers: Record<string, string>): Promise<Response> => fetch(server.url, { headers });

  before(async () => {
    const app = new Koa<RequestState>();
    const log = createLogger({ level: 'silent', mask: (text) => text });
    app.use(async (ctx, next) => {
      ctx.state.log = log;
      await next();
    });
    app.use(errors({ development: false, mask: (text) => text }));
    const gate = createGate({ apiKey: undefined, adminApiKey: KEY, sessions: undefined });
    const check = gate({ access: 'admin', method: 'get' });
    if (check) app.use(check as Koa.Middleware<RequestState>);
    app.use((ctx) => void (ctx.body = 'done'));
    const handle = app.callback();
    server = await listen((request, response) => void handle(request, response), '127.0.0.1', 0);
  });
  after(() => server?.close());

  const WRONG = [
    ['no key', {}],
    ['a wrong key', { Authorization: `Bearer ${KEY.replace('c', 'x')}` }],
    ['a shorter key', { Authorization: `Bearer ${KEY.slice(0, -1)}` }],
    ['a longer key', { Authorization: `Bearer ${KEY}r` }],
    ['a key of 4,096 characters', { Authorization: `Bearer ${'x'.repeat(4_096)}` }],
    ['the key without the scheme', { Authorization: KEY }],
    ['the key under another scheme', { Authorization: `Basic ${KEY}` }],
    ['an empty key', { Authorization: 'Bearer ' }],
  ] as const;
  for (const [what, headers] of WRONG)
    it(`answer 401 to ${what}`, async () => {
      const answer = await call(headers);
      expect(answer.status).to.equal(401);
      expect(answer.headers.get('WWW-Authenticate')).to.equal('Bearer');
      expect(answer.headers.get('X-Error-Code')).to.equal('ADMIN_API_KEY_WRONG');
      expect(await answer.text())
        .to.contain('Authorization: Bearer <ADMIN_API_KEY>')
        .and.not.contain(KEY);
    });

  it('compare every wrong key in constant time, whatever its length', async () => {
    const { mock: comparisons } = mock.method(crypto, 'timingSafeEqual');
    try {
      for (const [what, headers] of WRONG) {
        comparisons.resetCalls();
        await call(headers);
        expect(comparisons.callCount(), what).to.equal(1);
      }
    } finally {
      comparisons.restore();
    }
  });

  it('answer callers that send the key, with the scheme in any case', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER '])
      expect((await call({ Authorization: `${scheme} ${KEY}` })).status).to.equal(200);
  });
});
