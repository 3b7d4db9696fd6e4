import { spawnSync } from 'node:child_process';
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type Koa from 'koa';
import { request } from 'undici';
import { describedText } from '../../client/describe-api';
import { EVENT_SCHEMAS } from '../../client/events';
import { verifySignature } from '../../receiver/verify';
import { ERROR_CODES } from '../../service/base/errors';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { inheritedEnvironment } from '../../service/config/config';
import type { HttpAppOptions } from '../../service/http/app';
import { isOfConsole } from '../../service/http/gate';
import { errorsOf, OPERATIONS, openApi, TEXTS } from '../../client/description/openapi';

import { WEBHOOK_HEADERS } from '../../client/description/webhooks';
import { newHttpApp, startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';
import { schemaProblem } from '../helpers/receiver/schema-problems';

/** Codes of answers that no operation describes: those of the console, of any path, and of several nodes. */
const UNDESCRIBED = /^(CONSOLE_.*|METHOD_NOT_ALLOWED|CALLER_LEFT|UNHEALTHY|NODES_DIFFER|BLOCK_MISSING)$/;

describe('the OpenAPI description', () => {
  for (const path of ['docs/openapi.json', 'docs/error-codes.md'])
    it(`is committed in ${path}`, async () => {
      const committed = readFileSync(join(PROJECT_ROOT, path), 'utf8');
      expect(committed === (await describedText(path)), 'run npm run openapi').to.equal(true);
    });

  it('has no error according to @redocly/cli', () => {
    const redocly = join(PROJECT_ROOT, 'node_modules/@redocly/cli/bin/cli.js');
    const lint = spawnSync(process.execPath, [redocly, 'lint', 'docs/openapi.json', '--format=json'], {
      cwd: PROJECT_ROOT,
      env: { ...inheritedEnvironment(), REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    });
    const { totals, problems } = JSON.parse(lint.stdout.toString()) as { totals: object; problems: object[] };
    expect(problems).to.deep.equal([]);
    expect(totals).to.include({ errors: 0, warnings: 0 });
  });

  it('has every route but those of the console, which are for its page, and no other', () => {
    const routed = routesOf(withEveryPart()).filter((route) => !isOfConsole(route.split(' ')[1] ?? ''));
    const described = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(routed).to.have.members(described).and.length.greaterThan(20);
  });

  it('gives each code the statuses of the table of codes', () => {
    const described = OPERATIONS.flatMap((operation) =>
      [...errorsOf(operation)].flatMap(([status, codes]) => codes.map((code) => `${code} ${status}`)),
    );
    const table = Object.entries(ERROR_CODES)
      .filter(([code]) => !UNDESCRIBED.test(code))
      .flatMap(([code, { status = [] }]) => status.map((one) => `${code} ${one}`));
    expect([...new Set(described)]).to.have.members(table);
  });

  it('has a webhook with a meaning for every type of event', () => {
    const { webhooks } = openApi() as { webhooks: Record<string, { post: { description: string } }> };
    expect(Object.keys(webhooks)).to.have.members(Object.keys(EVENT_SCHEMAS));
    for (const { post } of Object.values(webhooks)) expect(post.description).to.match(/^[A-Z].+\.$/);
  });

  it('has a delivery whose signature is right', () => {
    const { webhooks, components } = openApi() as {
      webhooks: Record<string, { post: { requestBody: { content: Record<string, Content> } } }>;
      components: { parameters: Record<string, { example: string }> };
    };
    const content = webhooks['com.service.etr.nomination']?.post.requestBody.content['application/json'];
    const event = content?.examples?.signed?.value;
    expect(schemaProblem(event)).to.equal(undefined);
    const [jwk = ''] = /\{"kty":"OKP".*?\}/.exec(TEXTS.Webhooks ?? '') ?? [];
    const key = createPublicKey({ key: JSON.parse(jwk) as JsonWebKey, format: 'jwk' });
    const signature = components.parameters['X-Service-Signature']?.example;
    expect(verifySignature(signature, Buffer.from(JSON.stringify(event)), key)).to.equal(true);
  });
});

interface Content {
  examples?: Record<string, { value: unknown }>;
}

/** An application that has every operation. None of them is called. */
function withEveryPart(): Koa {
  const parts = {
    issuedDocuments: {},
    registries: {},
    keys: {},
    subscriptions: {},
    answers: {},
    console: { sessions: {} },
  };
  return newHttpApp({ apiKey: 'a', adminApiKey: 'b', ...(parts as Partial<HttpAppOptions>) });
}

/** Methods and paths of an application's routers, in the form of the description. */
function routesOf(app: Koa): string[] {
  const routers = app.middleware as { router?: { stack: { methods: string[]; path: string }[] } }[];
  return routers
    .flatMap(({ router }) => router?.stack ?? [])
    .flatMap(({ methods, path }) =>
      methods
        .filter((method) => method !== 'HEAD')
        .map((method) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`),
    );
}

describe('GET /openapi.json and GET /docs', () => {
  let service: RunningHttpApp;
  before(async () => (service = await startHttpApp({})));

  it('answer the description, which a conditional request does not get again', async () => {
    const answer = await request(`${service.url}/openapi.json`);
    expect(await answer.body.json()).to.deep.equal(JSON.parse(JSON.stringify(openApi())));
    const headers = { 'If-None-Match': String(answer.headers.etag) };
    expect((await request(`${service.url}/openapi.json`, { headers })).statusCode).to.equal(304);
  });

  it('answer a page that has every operation and schema, runs no script and loads nothing', async () => {
    const answer = await fetch(`${service.url}/docs`);
    expect(answer.headers.get('Content-Type')).to.equal('text/html; charset=utf-8');
    expect(answer.headers.get('Content-Security-Policy')).to.contain("default-src 'none'");
    const page = await answer.text();
    for (const { id, summary } of OPERATIONS)
      expect(page).to.contain(`id="operation-${id}"`).and.contain(summary);
    expect(page).to.contain(String(WEBHOOK_HEADERS['X-Service-Signature']?.example));
    for (const type of Object.keys(EVENT_SCHEMAS)) expect(page).to.contain(`id="webhook-${type}"`);
    expect(page).not.to.match(/<(script|img|link|iframe|object)\b|@import|url\(/i);
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const links = [...page.matchAll(/ href="([^"]+)"/g)].map(([, href = '']) => href);
    expect(links).to.have.length.greaterThan(50);
    for (const link of links)
      if (link !== '/openapi.json') expect(ids.has(link.replace(/^#/, '')), link).to.equal(true);
  });
});
