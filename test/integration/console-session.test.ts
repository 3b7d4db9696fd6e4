import { systemTime } from '../../service/base/time';
import { expect } from 'chai';
import { createLocalSetup } from '../helpers/chain/local-setup';
import { newState } from '../helpers/database/engines';
import { API, openConsolePage, type ConsolePage } from '../helpers/processes/console-page';
import { rawRequest } from '../helpers/processes/raw-request';
import { startService, type RunningService } from '../helpers/processes/running-service';

const ADMIN_API_KEY = 'the-admin-key-of-the-console-0123456789';
const CONSOLE_READ_KEY = 'the-read-key-of-the-console-0123456789';
const HOUR_MS = 3_600_000;

describe('sessions of the console', () => {
  let settings: Record<string, string>;
  let service: RunningService;
  let page: ConsolePage;
  const clock = { time: systemTime.now(), now: () => clock.time };

  const start = (changed: Record<string, string> = {}): Promise<RunningService> =>
    startService({ ...settings, ...changed }, { time: { ...systemTime, now: clock.now } });
  const restart = async (changed: Record<string, string> = {}): Promise<void> => {
    await service.stop();
    service = await start(changed);
  };
  const open = (cookie?: string): ConsolePage => openConsolePage(service.url, cookie);

  before(async () => {
    const [local, state] = [await createLocalSetup(), await newState('SQLite')];
    const own = { ADMIN_API_KEY, CONSOLE_READ_KEY, WALLET_PRIVATE_KEY: '' };
    settings = { ...local.settings, ...state?.settings, ...own };
    service = await start();
  });
  beforeEach(() => (page = open()));
  /** The status and the code of an answer. */
  const coded = async (...[method, path, body, headers]: Parameters<ConsolePage['call']>) => {
    const { status, code } = await page.call(method, path, body, headers);
    return [status, code];
  };
  const statusFor = async (one: ConsolePage, path = `${API}/session`): Promise<number> =>
    (await one.call('GET', path)).status;
  it('begin with ADMIN_API_KEY, for twelve hours, in a cookie that no script has', async () => {
    const { status, body, headers } = await page.logIn(ADMIN_API_KEY);
    expect(status).to.equal(200);
    expect(body).to.deep.equal({ role: 'operator', owner: 'operator', expiresAt: clock.time + 12 * HOUR_MS });
    const [cookie = ''] = headers.getSetCookie();
    expect(cookie).to.match(/^console-[0-9a-f]{12}=[\w-]{80,}; /);
    expect(cookie).to.contain('HttpOnly; SameSite=Strict').and.contain('Path=/; Max-Age=43200');
    expect(cookie).not.to.contain('Secure').and.not.to.contain(ADMIN_API_KEY);
    expect((await page.call('GET', `${API}/session`)).body).to.deep.equal(body);
    expect((await page.call('GET', '/subscriptions')).status).to.equal(200);
    const Origin = service.url.replace('http:', 'https:');
    const over = await page.call('POST', `${API}/session`, { key: ADMIN_API_KEY }, { Origin });
    expect(over.headers.getSetCookie()[0], 'for a page over HTTPS').to.match(/; Secure$/);
  });

  it('of CONSOLE_READ_KEY look, and change nothing', async () => {
    expect((await page.logIn(CONSOLE_READ_KEY)).body.role).to.equal('reader');
    const own = ['session', 'facts', 'overview'].map((name) => `${API}/${name}`);
    for (const path of [...own, '/subscriptions', '/registries', '/deliveries', '/events'])
      expect((await page.call('GET', path)).status, path).to.equal(200);
    const changes = [
      ['POST', '/subscriptions'],
      ['PUT', '/subscriptions/default'],
      ['DELETE', '/subscriptions/default'],
      ['POST', '/subscriptions/default/test'],
      ['POST', '/subscriptions/default/redeliver'],
      ['POST', '/create/BILL_OF_LADING'],
      ['POST', '/registries'],
      ['DELETE', '/registries/1/x'],
    ] as const;
    for (const [method, path] of changes)
      expect(await coded(method, path, {}), `${method} ${path}`).to.deep.equal([403, 'KEY_READ_ONLY']);
    expect((await page.call('DELETE', `${API}/session`)).status).to.equal(204);
  });

  it('of a key with a scope see its part, until the key ends, and a day at most', async () => {
    const headers = { Authorization: `Bearer ${ADMIN_API_KEY}` };
    const make = async (hours: number, may = ['read', 'subscribe']): Promise<{ id: string; key: string }> => {
      const scope = { parties: [`eip155:31337:0x${'1'.repeat(40)}`] };
      const expiresAt = new Date(clock.time + hours * HOUR_MS).toISOString();
      const body = { name: 'Bank', scope, may, expiresAt };
      return (await open().call<{ id: string; key: string }>('POST', '/keys', body, headers)).body;
    };
    const { id, key } = await make(2);
    const { body, headers: answered } = await page.logIn(key);
    const holder = { name: 'Bank', may: ['read', 'subscribe'] };
    const { owner } = body;
    expect(owner).to.match(/^name:[0-9a-f]{64}$/);
    expect(body).to.deep.equal({ role: 'holder', owner, expiresAt: clock.time + 2 * HOUR_MS, holder });
    const asking = (one: string) => page.call('GET', '/deliveries', undefined, { 'X-Console-Owner': one });
    expect((await asking(owner)).status).to.equal(200);
    expect((await asking('operator')).code, 'of another owner').to.equal('CONSOLE_SESSION_ENDED');
    expect(answered.getSetCookie()[0]).to.contain('Max-Age=7200').and.not.to.contain(key.slice(4));
    for (const path of [`${API}/facts`, '/subscriptions', '/deliveries', '/events'])
      expect((await page.call('GET', path)).status, path).to.equal(200);
    // Nothing but that the service answers.
    expect(await statusFor(page, `${API}/overview`)).to.equal(204);
    for (const path of ['/registries', '/keys', `${API}/documents/1/progress`])
      expect(await coded('GET', path), path).to.deep.equal([403, 'KEY_MAY_NOT']);
    const { cookie } = page;
    await page.call('DELETE', `${API}/session`);
    expect(await statusFor(open(cookie))).to.equal(204);
    expect((await page.logIn(key)).status).to.equal(200);
    await restart();
    const later = open(page.cookie);
    expect(await statusFor(later)).to.equal(200);
    await later.call('DELETE', `/keys/${id}`, undefined, headers);
    expect((await later.call('GET', '/deliveries')).code).to.equal('CONSOLE_SESSION_ENDED');
    expect((await later.logIn((await make(48)).key)).body.expiresAt).to.equal(clock.time + 24 * HOUR_MS);
    expect((await open().logIn((await make(2, ['subscribe'])).key)).code).to.equal('CONSOLE_KEY_WRONG');
    clock.time += HOUR_MS;
  });

  it('of CONSOLE_READ_KEY see no path of a sink; those of ADMIN_API_KEY do', async () => {
    const sink = 'https://subscriber.example/webhook/the-key-in-the-path';
    await page.logIn(ADMIN_API_KEY);
    const { status } = await page.call('POST', '/subscriptions', { sink, protocol: 'HTTP' });
    expect(status).to.equal(201);
    const shown = async (): Promise<unknown> => {
      const { body } = await page.call('GET', '/subscriptions');
      const [{ id, sink: listed }] = body as unknown as [{ id: string; sink: string }];
      const one = (await page.call('GET', `/subscriptions/${id}`)).body as unknown as { sink: string };
      expect(one.sink).to.equal(listed);
      return listed;
    };
    expect(await shown()).to.equal(sink);
    await page.logIn(CONSOLE_READ_KEY);
    expect(await shown()).to.equal('https://subscriber.example/…');
  });

  it('are needed for every path but the page, whatever the case of its letters', async () => {
    for (const path of [`${API}/facts`, `${API}/overview`, `${API}/documents/1/progress`])
      expect(await coded('GET', path), path).to.deep.equal([401, 'CONSOLE_SESSION_ENDED']);
    for (const path of ['/CONSOLE/api/facts', '/console/API/overview', '/Console/Api/Facts/']) {
      const { status, headers } = await fetch(service.url + path);
      const code = headers.get('X-Error-Code');
      expect([status, code], path).to.deep.equal([401, 'CONSOLE_SESSION_ENDED']);
    }
    expect(await coded('GET', '/subscriptions')).to.deep.equal([401, 'ADMIN_API_KEY_WRONG']);
    expect(await coded('GET', '/tokens/1')).to.deep.equal([401, 'API_KEY_WRONG']);
    expect((await fetch(`${service.url}/console/`)).status).to.equal(200);
    await page.logIn(ADMIN_API_KEY);
    const [name] = page.cookie.split('=');
    const forged = open(`${name}=operator.9.x.y`);
    for (const path of [`${API}/facts`, '/subscriptions', '/tokens/1'])
      expect((await forged.call('GET', path)).code).to.equal('CONSOLE_SESSION_ENDED');
    // It needs no key here.
    for (page of [open(), forged])
      expect(await coded('POST', '/create/BILL_OF_LADING', {})).to.deep.equal([500, 'NOT_CONFIGURED']);
  });

  it('have private answers at a target of any form', async () => {
    const { host } = new URL(service.url);
    for (const target of [`http://${host}${API}/facts`, `HTTP://x.example${API}/facts?x`, `${API}/facts`]) {
      const head = `Host: ${host}\r\nConnection: close`;
      const request = await rawRequest(service.url, `GET ${target} HTTP/1.1\r\n${head}\r\n\r\n`);
      await request.ended();
      expect(request.answer(), target)
        .to.match(/^HTTP\/1.1 401 /)
        .and.match(/^Cache-Control: private, no-store\r$/im)
        .and.not.match(/^Access-Control-/im);
    }
  });

  it('do not help a wrong key, and are not needed beside a right one', async () => {
    await page.logIn(ADMIN_API_KEY);
    const get = (Authorization: string) => coded('GET', '/subscriptions', undefined, { Authorization });
    expect(await get(`Bearer ${'x'.repeat(20)}`)).to.deep.equal([401, 'ADMIN_API_KEY_WRONG']);
    // A proxy in front of the service may ask for a password of its own.
    expect(await get('Basic eDp5')).to.deep.equal([200, null]);
    const reader = open();
    await reader.logIn(CONSOLE_READ_KEY);
    const subscription = { sink: 'https://subscriber.example/webhook', protocol: 'HTTP' };
    const headers = { Authorization: `Bearer ${ADMIN_API_KEY}` };
    expect((await reader.call('POST', '/subscriptions', subscription, headers)).status).to.equal(201);
  });

  it('are of no use to pages on other ports of the host, which have the cookie too', async () => {
    await page.logIn(ADMIN_API_KEY);
    for (const path of ['/subscriptions', `${API}/session`, `${API}/facts`])
      for (const [site, status] of [
        ['same-site', 403],
        ['cross-site', 403],
        ['same-origin', 200],
        ['none', 200],
      ] as const) {
        const answer = await page.call('GET', path, undefined, { 'Sec-Fetch-Site': site });
        expect(answer.status, `${path} ${site}`).to.equal(status);
        if (status !== 403) continue;
        expect(answer.code).to.equal('CONSOLE_ORIGIN_WRONG');
        expect(answer.message).to.contain('Sec-Fetch-Site').and.not.contain('Host is');
      }
  });

  it('of two services on one host do not end each other', async () => {
    await page.logIn(ADMIN_API_KEY);
    await restart({ DOMAIN: 'other.example', DID_KEY_PAIRS: '' });
    const beside = open();
    await beside.logIn(ADMIN_API_KEY);
    expect(page.cookie.split('=')[0]).not.to.equal(beside.cookie.split('=')[0]);
    const both = `${page.cookie}; ${beside.cookie}`;
    expect(await statusFor(open(both), '/subscriptions')).to.equal(200);
    await restart();
    expect(await statusFor(open(both), '/subscriptions')).to.equal(200);
  });

  it('change something only for the own page', async () => {
    await page.logIn(ADMIN_API_KEY);
    for (const Origin of ['https://other.example', 'null', `http://127.0.0.1:1`, 'x', ''])
      for (const [method, path] of [
        ['POST', `${API}/session`],
        ['POST', '/subscriptions'],
        ['DELETE', `${API}/session`],
      ] as const) {
        const answer = await coded(method, path, { key: ADMIN_API_KEY }, { Origin });
        expect(answer, `${Origin} ${method}`).to.deep.equal([403, 'CONSOLE_ORIGIN_WRONG']);
      }
    expect(await statusFor(page)).to.equal(200);
  });

  it('end after their time, and when the page logs out, but not at a restart', async () => {
    await page.logIn(ADMIN_API_KEY);
    await restart();
    const later = open(page.cookie);
    expect(await statusFor(later)).to.equal(200);
    clock.time += 12 * HOUR_MS;
    expect(await statusFor(later)).to.equal(204);
    expect((await later.call('GET', `${API}/facts`)).code).to.equal('CONSOLE_SESSION_ENDED');
    await later.logIn(ADMIN_API_KEY);
    const { cookie } = later;
    const { status, headers } = await later.call('DELETE', `${API}/session`);
    expect(status).to.equal(204);
    expect(headers.getSetCookie()[0]).to.match(/^console-\w+=; .*Max-Age=0/);
    expect(await statusFor(open(cookie))).to.equal(204);
    expect((await open(cookie).call('GET', `${API}/facts`)).code).to.equal('CONSOLE_SESSION_ENDED');
  });

  it('end when their key is changed', async () => {
    await page.logIn(ADMIN_API_KEY);
    const reader = open();
    await reader.logIn(CONSOLE_READ_KEY);
    await restart({ CONSOLE_READ_KEY: 'another-key-to-look-only' });
    expect(await statusFor(open(page.cookie))).to.equal(200);
    expect(await statusFor(open(reader.cookie))).to.equal(204);
    const again = open();
    await again.logIn('another-key-to-look-only');
    await restart({ ADMIN_API_KEY: 'another-key-to-operate', CONSOLE_READ_KEY: 'another-key-to-look-only' });
    expect(await statusFor(open(page.cookie))).to.equal(204);
    expect(await statusFor(open(again.cookie))).to.equal(200);
    await restart();
  });

  it('need more patience after each wrong key, but none for the right one', async () => {
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      expect((await page.logIn('wrong')).code).to.equal('CONSOLE_KEY_WRONG');
      const { status, code, headers } = await page.logIn('wrong');
      expect([status, code]).to.deep.equal([429, 'KEY_ATTEMPTS']);
      expect(headers.get('Retry-After')).to.equal(String(seconds));
      const bearer = (key: string) =>
        open().call('GET', '/subscriptions', undefined, { Authorization: `Bearer ${key}` });
      expect((await bearer('wrong')).code).to.equal('KEY_ATTEMPTS');
      expect((await bearer(ADMIN_API_KEY)).status).to.equal(200);
      expect((await page.logIn(ADMIN_API_KEY)).status).to.equal(200);
      expect((await page.logIn(CONSOLE_READ_KEY)).status).to.equal(200);
      clock.time += seconds * 1_000;
    }
    clock.time += 10 * 60_000;
    expect((await page.logIn('wrong')).status).to.equal(401);
    expect((await page.logIn('wrong')).headers.get('Retry-After')).to.equal('1');
  });

  it('begin with a link, once and within 15 minutes', async () => {
    const link = async (key: string): Promise<Response> =>
      fetch(`${service.url}/console/api/links`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}` },
      });
    const made = async (): Promise<string> => {
      const { url } = (await (await link(ADMIN_API_KEY)).json()) as { url: string };
      expect(url).to.match(/^\/console#link=/);
      return url.split('=')[1] ?? '';
    };
    expect((await link(ADMIN_API_KEY)).status).to.equal(201);
    expect((await link(CONSOLE_READ_KEY)).status).to.be.oneOf([401, 429]);
    const token = await made();
    const use = (by: ConsolePage, one: string) => by.call('POST', `${API}/session`, { link: one });
    expect((await use(page, token)).body).to.include({ role: 'operator' });
    expect(await statusFor(page)).to.equal(200);
    const [name = ''] = page.cookie.split('=');
    // The cookie of a session is no link, and the token of a link is no session.
    const other = await made();
    expect(await statusFor(open(`${name}=${other}`))).to.equal(204);
    const cookie = page.cookie.slice(name.length + 1);
    for (const spent of [token, cookie])
      expect((await use(open(), spent)).code).to.equal('CONSOLE_KEY_WRONG');
    clock.time += 15 * 60_000;
    expect((await use(open(), other)).code).to.equal('CONSOLE_KEY_WRONG');
  });

  it('do not begin with rubbish', async () => {
    const bodies = ['{', '[]', '{}', '{"key":1}', '{"key":"a","link":"b"}', '{"__proto__":{"key":"x"}}', 'x'];
    for (const body of bodies) {
      const [status, code] = await coded('POST', `${API}/session`, body);
      expect(status, body).to.equal(400);
      expect(code, body).to.match(/^(REQUEST_FIELD_INVALID|BODY_NOT_JSON)$/);
    }
    const key = 'x'.repeat(70_000);
    expect(await coded('POST', `${API}/session`, { key })).to.deep.equal([413, 'BODY_TOO_LARGE']);
  });
});
