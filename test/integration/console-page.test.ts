import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Router } from '@koa/router';
import { expect } from 'chai';
import Koa from 'koa';
import { request } from 'undici';
import { systemTime } from '../../service/base/time';
import { createLogger } from '../../service/base/logger';
import { answerPage } from '../../service/http/console-routes';
import { cors } from '../../service/http/gate';
import { errors } from '../../service/http/errors';
import type { RequestState } from '../../service/http/request-log';
import { listen, type HttpServer } from '../../service/http/server';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

describe("the console's page", () => {
  let server: HttpServer;
  const folder = temporaryFolder();
  const get = (path: string): Promise<Response> => fetch(server.url + path);

  before(async () => {
    writeFileSync(join(folder.path, 'index.html'), '<!doctype html><title>Console</title>');
    writeFileSync(join(folder.path, 'app.js'), '"use strict";');
    const app = new Koa<RequestState>();
    const mask = (text: string): string => text;
    app.use(async (ctx, next) => {
      ctx.state.log = createLogger({ level: 'silent', mask });
      await next();
    });
    app.use(cors);
    app.use(errors({ development: false, mask }));
    const router = new Router();
    answerPage(router, folder.path);
    app.use(router.routes());
    const handle = app.callback();
    server = await listen((request, response) => void handle(request, response), '127.0.0.1', 0, {
      time: systemTime,
    });
    stopLater('the server of the page', () => server.close());
  });
  it('may run its own script only, and is in no frame of another page', async () => {
    const { status, headers } = await get('/console');
    expect(status).to.equal(200);
    expect(headers.get('Content-Type')).to.equal('text/html; charset=utf-8');
    const policy = headers.get('Content-Security-Policy') ?? '';
    expect(policy.split('; ')).to.include.members([
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
    ]);
    expect(policy).not.to.contain('unsafe');
    expect(headers.get('X-Content-Type-Options')).to.equal('nosniff');
    expect(headers.get('Access-Control-Allow-Origin')).to.equal(null);
  });

  it('is not sent again if it is the same', async () => {
    const first = await get('/console/app.js');
    expect(first.headers.get('Content-Type')).to.equal('text/javascript; charset=utf-8');
    expect(first.headers.get('Cache-Control')).to.equal('no-cache');
    const etag = first.headers.get('ETag') ?? '';
    const again = await request(`${server.url}/console/app.js`, { headers: { 'If-None-Match': etag } });
    expect(again.statusCode).to.equal(304);
  });

  it('says what to do if it is not in the build', async () => {
    const answer = await get('/console/app.css');
    expect([answer.status, answer.headers.get('X-Error-Code')]).to.deep.equal([404, 'CONSOLE_NOT_BUILT']);
    expect(await answer.text()).to.contain('npm run build');
  });
});
