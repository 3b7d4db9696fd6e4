import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  startSubscribedService,
  type ShownSubscription,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import type { ApiAnswer } from '../helpers/processes/create-call';
import { subscriptionWith } from '../helpers/subscription-body';

const UNKNOWN = '/subscriptions/0192f3c8-5a00-7000-8000-000000000009';

describe('the API of subscriptions', () => {
  let api: SubscribedService;

  before(async () => {
    api = await startSubscribedService('SQLite');
  });

  it('creates, shows, replaces and deletes a subscription', async () => {
    const sink = await api.sink();
    const body = { sink: sink.url, protocol: 'HTTP', types: ['com.service.etr.minted'] };
    const created = await api.call<ShownSubscription>('POST', '/subscriptions', body);
    expect(created.status, created.message).to.equal(201);
    const path = `/subscriptions/${created.body.id}`;
    expect(created.headers.get('location')).to.equal(path);
    expect(created.headers.get('cache-control')).to.equal('private, no-store');
    expect(created.body).to.deep.equal({ ...subscriptionWith(), ...body, id: created.body.id });
    expect((await api.call('GET', path)).body).to.deep.equal(created.body);
    const others = Object.fromEntries(Object.entries(created.body).filter(([name]) => name !== 'types'));
    const replaced = await api.call<ShownSubscription>('PUT', path, { ...others, filters: [] });
    expect(replaced.status, replaced.message).to.equal(200);
    expect(replaced.body).to.deep.equal({ ...others, filters: [] });
    expect((await api.call('GET', path)).body).to.deep.equal(replaced.body);
    const removed = await api.call('DELETE', path);
    expect(removed.status).to.equal(200);
    expect(removed.body).to.deep.equal(replaced.body);
    expect(removed.headers.get('x-undelivered')).to.equal('0');
    expect(await api.call('GET', path)).to.include({ status: 404, code: 'SUBSCRIPTION_UNKNOWN' });
  });

  it('lists all subscriptions in pages, the one of the settings first', async () => {
    const sink = await api.sink();
    const made = [];
    for (let index = 0; index < 3; index++) made.push((await api.subscribe(sink)).id);
    const seen: string[] = [];
    let page: string | undefined = '/subscriptions?limit=1';
    while (page !== undefined) {
      const answer: ApiAnswer<ShownSubscription[]> = await api.call('GET', page);
      expect(answer.status, answer.message).to.equal(200);
      expect(answer.body).to.have.length(1);
      seen.push(...answer.body.map(({ id }) => id));
      page = /^<(.*)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
    }
    expect(seen).to.deep.equal(['default', ...made]);
    const all = await api.call<ShownSubscription[]>('GET', '/subscriptions');
    expect(all.body.map(({ id }) => id)).to.deep.equal(seen);
    expect(all.headers.get('link')).to.equal(null);
    const most = await api.call('GET', '/subscriptions?limit=100');
    expect(most.body, most.message).to.deep.equal(all.body);
    const { headers } = await api.call('GET', '/subscriptions?limit=2');
    const [, next = ''] = /^<(.*)>/.exec(headers.get('link') ?? '') ?? [];
    for (const id of made) await api.call('DELETE', `/subscriptions/${id}`);
    const ended = await api.call('GET', next);
    expect(ended).to.include({ status: 400, code: 'QUERY_INVALID' });
    expect(ended.message).to.contain('it was deleted');
  });

  it('refuses requests without the key, of wrong form or to unknown subscriptions', async () => {
    const anonymous = { authorization: 'Bearer wrong' };
    const body = { sink: api.ofSettings.url, protocol: 'HTTP' };
    const refused = async (
      method: string,
      path: string,
      given?: unknown,
      headers?: Record<string, string>,
    ): Promise<string> => {
      const { status, code, message } = await api.call(method, path, given, headers);
      return `${status} ${code} ${message}`;
    };
    for (const [method, path] of [
      ['GET', '/subscriptions'],
      ['POST', '/subscriptions'],
      ['GET', UNKNOWN],
      ['PUT', UNKNOWN],
      ['DELETE', UNKNOWN],
      ['POST', `${UNKNOWN}/test`],
      ['POST', `${UNKNOWN}/redeliver`],
      ['GET', `${UNKNOWN}/deliveries`],
    ] as const)
      expect(await refused(method, path, undefined, anonymous)).to.match(
        /^(401 ADMIN_API_KEY_WRONG|429 KEY_ATTEMPTS)/,
      );
    for (const [method, path, given] of [
      ['GET', UNKNOWN],
      ['PUT', UNKNOWN, body],
      ['DELETE', UNKNOWN],
      ['POST', `${UNKNOWN}/test`],
      ['POST', `${UNKNOWN}/redeliver`, { dead: true }],
      ['GET', `${UNKNOWN}/deliveries`],
    ] as const)
      expect(await refused(method, path, given)).to.match(/^404 SUBSCRIPTION_UNKNOWN/);
    expect(await refused('PATCH', UNKNOWN)).to.match(/^405/);
    expect(await refused('PUT', '/subscriptions', body)).to.match(/^405/);
    const wrong = { ...body, config: { retry: { initialDelayMs: 0 } } };
    expect(await refused('POST', '/subscriptions', wrong)).to.match(
      /^400 SUBSCRIPTION_INVALID \/config\/retry\/initialDelayMs must be/,
    );
    expect(await refused('POST', '/subscriptions', { ...body, filters: [{ sql: '1' }] })).to.match(
      /^400 SUBSCRIPTION_INVALID \/filters\/0\/sql is not a supported/,
    );
    expect(await refused('POST', '/subscriptions', { ...body, sink: 'http://10.0.0.1/' })).to.match(
      /^400 SINK_NOT_ALLOWED \/sink /,
    );
    for (const text of ['{', '', Buffer.from('{"\xff":1}', 'latin1')])
      expect(await refused('POST', '/subscriptions', text)).to.match(/^400 BODY_NOT_JSON/);
    expect(await refused('POST', '/subscriptions', `{"x":[${'[],'.repeat(20_000)}1]}`)).to.match(
      /^400 BODY_TOO_COMPLEX .* 20000 values/,
    );
    expect(await refused('POST', '/subscriptions', 'x=1', { 'content-type': 'text/plain' })).to.match(
      /^415 CONTENT_TYPE_WRONG/,
    );
    expect(await refused('POST', '/subscriptions', body, { 'content-encoding': 'x' })).to.match(
      /^415 CONTENT_ENCODING_UNSUPPORTED/,
    );
    expect(await refused('POST', '/subscriptions', body, { 'content-encoding': 'gzip' })).to.match(
      /^400 BODY_NOT_JSON .* Content-Encoding/,
    );
    const [start = '', end = ''] = JSON.stringify({ ...body, x: '|' }).split('|');
    const ofSize = (bytes: number): string => start + 'x'.repeat(bytes - start.length - end.length) + end;
    expect(await refused('POST', '/subscriptions', ofSize(65_536))).to.match(
      /^400 SUBSCRIPTION_INVALID \/x is not a member/,
    );
    expect(await refused('POST', '/subscriptions', ofSize(65_537))).to.match(
      /^413 BODY_TOO_LARGE .* 64 KB\.$/,
    );
    const noPage = ['limit=0', 'limit=101', 'limit=x', 'limit=1&limit=2', 'after=nobody', 'after=%00', 'x=1'];
    for (const query of noPage)
      expect(await refused('GET', `/subscriptions?${query}`)).to.match(/^400 QUERY_INVALID/);
    const noPlace = ['1', '%00', '1.1', 'AAAA'];
    for (const query of ['state=sent', 'token=x', 'x=', ...noPlace.map((place) => `after=${place}`)])
      expect(await refused('GET', `/subscriptions/default/deliveries?${query}`)).to.match(
        /^400 QUERY_INVALID/,
      );
    for (const given of [{}, { dead: false }, { event: 'x', dead: true }, { fromBlock: -1 }])
      expect(await refused('POST', '/subscriptions/default/redeliver', given)).to.match(
        /^400 REDELIVERY_INVALID/,
      );
  });

  it('shows `default`, pauses and resumes it, and changes nothing else of it', async () => {
    const path = '/subscriptions/default';
    const { body } = await api.call<ShownSubscription>('GET', path);
    expect(body).to.include({ id: 'default', sink: api.ofSettings.url.replace(/\/$/, '') });
    const put = (given: unknown) => api.call<ShownSubscription>('PUT', path, given);
    const paused = await put({ config: { state: 'paused' } });
    expect(paused.body.config.state, paused.message).to.equal('paused');
    for (const given of [{ ...body }, { config: { state: 'gone' } }, { config: { timeoutMs: 1 } }, {}])
      expect(await put(given)).to.include({ status: 409, code: 'SUBSCRIPTION_IN_SETTINGS' });
    for (const [method, action] of [
      ['DELETE', ''],
      ['POST', '/test'],
    ] as const)
      expect(await api.call(method, path + action)).to.include({
        status: 409,
        code: 'SUBSCRIPTION_IN_SETTINGS',
      });
    expect((await put({ config: { state: 'active' } })).body).to.deep.equal(body);
  });

  /** The stored subscriptions, as text. */
  function stored(): string {
    const folder = api.settings.DATA_DIR ?? '';
    return readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), 'latin1'))
      .join('');
  }

  it('masks header values everywhere, stores them encrypted and sends them', async () => {
    const sink = await api.sink();
    const value = 'the-value-of-a-secret-header';
    const headers = { 'X-Tenant': value, 'X-Other': 'kept' };
    const made = await api.subscribe(sink, { protocolsettings: { headers } });
    const path = `/subscriptions/${made.id}`;
    expect(made.protocolsettings.headers).to.deep.equal({ 'x-tenant': '***', 'x-other': '***' });
    const sent = await api.call<{ isDelivered: boolean; status: number }>('POST', `${path}/test`);
    expect(sent.body, sent.message).to.include({ isDelivered: true, status: 204 });
    expect(sink.deliveries[0]?.headers).to.include({ 'x-tenant': value, 'x-other': 'kept' });
    expect(sink.deliveries[0]?.verified).to.equal(true);
    expect(sink.deliveries[0]?.event.type).to.equal('com.service.etr.test');
    const put = await api.call('PUT', path, {
      sink: sink.url,
      protocol: 'HTTP',
      protocolsettings: { headers: { 'X-Other': null } },
    });
    const shown = [put, await api.call('GET', path), await api.call('GET', '/subscriptions')];
    for (const { status, body } of shown) {
      expect(status).to.equal(200);
      expect(JSON.stringify(body)).to.contain('***').and.not.to.contain(value);
    }
    await api.call('POST', `${path}/test`);
    expect(sink.deliveries[1]?.headers).to.include({ 'x-tenant': value }).and.not.to.have.property('x-other');
    expect(JSON.stringify(api.service.log)).not.to.contain(value);
    expect(stored()).to.contain(made.id).and.not.to.contain(value);
    expect((await api.call('DELETE', path)).status).to.equal(200);
  });

  it('shows the secret of standardWebhooks once, stores it encrypted and signs with it', async () => {
    const sink = await api.sink();
    const made = await api.subscribe(sink, { config: { standardWebhooks: true } });
    expect(made.config.secret).to.match(/^whsec_/);
    const path = `/subscriptions/${made.id}`;
    const shown = await api.call<ShownSubscription>('GET', path);
    expect(shown.body.config).not.to.have.property('secret');
    const put = await api.call<ShownSubscription>('PUT', path, shown.body);
    expect(put.body, put.message).to.deep.equal(shown.body);
    expect((await api.call('POST', `${path}/test`)).status).to.equal(200);
    expect(sink.deliveries[0]?.headers['webhook-signature']).to.match(/^v1,\S+ v1a,/);
    const secret = (made.config.secret ?? '').replace('whsec_', '');
    expect(stored()).to.contain(made.id).and.not.to.contain(secret);
    expect(JSON.stringify(api.service.log)).not.to.contain(secret);
    await api.call('DELETE', path);
  });

  it('makes, changes and tests no subscription without SIGNING_PRIVATE_KEY', async () => {
    const sink = await api.sink();
    const { id } = await api.subscribe(sink);
    const path = `/subscriptions/${id}`;
    await api.restart({ SIGNING_PRIVATE_KEY: '', WEBHOOK_URL: '' });
    const list = await api.call('GET', '/subscriptions');
    const body = { sink: sink.url, protocol: 'HTTP', config: { state: 'paused' } };
    for (const [method, to, given] of [
      ['POST', '/subscriptions', body],
      ['PUT', path, body],
      ['POST', `${path}/test`, undefined],
    ] as const) {
      const answer = await api.call(method, to, given);
      expect(answer, method + to).to.include({ status: 409, code: 'SIGNING_KEY_MISSING' });
      expect(answer.message).to.match(/Make a key with `npx tdoc signing-key`/);
    }
    expect((await api.call('GET', '/subscriptions')).body).to.deep.equal(list.body);
    expect(sink.deliveries).to.deep.equal([]);
    await api.restart();
    await api.call('DELETE', path);
  });

  it('does not exist without ADMIN_API_KEY, shows no `default` without a webhook', async () => {
    const SECRETS_KEY = '';
    await api.restart({ ADMIN_API_KEY: '' });
    const request = { sink: api.ofSettings.url, protocol: 'HTTP' };
    for (const [method, path, given] of [
      ['GET', '/subscriptions', undefined],
      ['POST', '/subscriptions', request],
      ['PUT', UNKNOWN, request],
    ] as const)
      expect(await api.call(method, path, given)).to.include({ status: 404, code: 'NOT_FOUND' });
    await api.restart({ SECRETS_KEY, WEBHOOK_URL: '' });
    expect((await api.call('GET', '/subscriptions')).body).to.deep.equal([]);
    expect(await api.call('GET', '/subscriptions/default')).to.include({ status: 404 });
    const refused = [{ config: { standardWebhooks: true } }, { protocolsettings: { headers: { a: 'b' } } }];
    for (const members of refused) {
      const answer = await api.call('POST', '/subscriptions', { ...request, ...members });
      expect(answer).to.include({ status: 400, code: 'SECRETS_KEY_MISSING' });
      expect(answer.message).to.match(/Set SECRETS_KEY to the output of/);
    }
    expect((await api.call('GET', '/subscriptions')).body).to.deep.equal([]);
    await api.restart();
  });
});
