import { expect } from 'chai';
import type { ServiceEvent } from '../../client/events';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { ENGINES } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { callService, type ApiAnswer } from '../helpers/processes/create-call';
import { RECEIVER, startReceiverProcess } from '../helpers/processes/receiver-process';
import { startSubscribedService, type SubscribedService } from '../helpers/processes/subscribed-service';
import type { RecordingReceiver } from '../helpers/receiver/recording-receiver';
import { temporaryFolder } from '../helpers/temporary-folder';

const READ_KEY = 'a-key-that-reads-in-these-tests-0123456789';
const FAR = '2099-01-01T00:00:00Z';
const CHAIN = 31337;

interface Page {
  events: { body: string }[];
  cursor: string;
}

for (const engine of ENGINES)
  describe(`A key with a scope on ${engine}`, () => {
    let api: SubscribedService;
    /** The tokens of two parties. */
    let tokens: bigint[];
    let parties: string[];
    let keys: string[];
    let ids: string[];

    before(async function () {
      const settings = { CONFIRMATIONS: '0', CONSOLE_READ_KEY: READ_KEY };
      const started = await startSubscribedService(engine, settings);
      if (started === undefined) return this.skip();
      api = started;
      [parties, tokens, keys, ids] = [[], [], [], []];
      for (const account of [1, 2]) {
        const party = await api.local.account(account);
        parties.push(party);
        tokens.push((await mintDirectly(api.local, party)).tokenId);
        const { id, key } = await make({
          name: `party ${account}`,
          scope: { parties: [`eip155:${CHAIN}:${party}`] },
          may: ['read', 'subscribe'],
        });
        keys.push(key);
        ids.push(id);
      }
      await api.caughtUp();
    });

    const make = async (members: object): Promise<{ id: string; key: string }> => {
      const { status, body, message } = await api.call<{ id: string; key: string }>('POST', '/keys', {
        expiresAt: FAR,
        ...members,
      });
      expect(status, message).to.equal(201);
      return body;
    };
    const as = async <Body>(key: string | undefined, method: string, path: string, body?: unknown) =>
      callService<Body>(method, `${api.service.url}${path}`, body, { authorization: `Bearer ${key}` });
    const answered = ({ status, code }: Pick<ApiAnswer, 'status' | 'code'>): unknown[] => [status, code];
    const subscribe = async (key: string | undefined, sink: RecordingReceiver, members = {}) =>
      as<{ id: string; scope: object[] }>(key, 'POST', '/subscriptions', {
        sink: sink.url,
        protocol: 'HTTP',
        ...members,
      });
    const tokensOf = (bodies: readonly string[]): Set<string> =>
      new Set(bodies.map((body) => (JSON.parse(body) as { subject: string }).subject));
    const hex = (tokenId: bigint | undefined): string => String(tokenId?.toString(16)).padStart(64, '0');

    it('fetches the events that name its party, and no others, also with the receiver', async () => {
      for (const [index, key] of keys.entries()) {
        const { body, headers } = await as<Page>(key, 'GET', '/events/stream');
        expect(tokensOf(body.events.map((one) => one.body))).to.deep.equal(new Set([String(tokens[index])]));
        expect(headers.get('vary')).to.equal('Authorization, Cookie');
        const others = `tokens=${tokens[1 - index]}`;
        expect((await as<Page>(key, 'GET', `/events/stream?${others}`)).body.events).to.deep.equal([]);
        const command = [...RECEIVER, `--fetch=${api.service.url}/events/stream`];
        const receiver = startReceiverProcess(temporaryFolder().path, { RECEIVER_API_KEY: key }, command);
        const subjects = (): unknown[] => receiver.lines().flatMap(({ subject }) => subject ?? []);
        await eventually('all are printed', () => subjects().length >= body.events.length);
        expect(new Set(subjects())).to.deep.equal(new Set([String(tokens[index])]));
        receiver.kill('SIGTERM');
        expect([await receiver.ended, receiver.errors()]).to.deep.equal([0, '']);
      }
    });

    it('reads the tokens and events of its scope: all else does not exist', async () => {
      const [own, other] = tokens.map(hex);
      const ofAll = await api.call<{ id: string; tokenId: string }[]>('GET', '/events');
      const eventOf = (tokenId: bigint | undefined): string | undefined =>
        ofAll.body.find((one) => one.tokenId === String(tokenId))?.id;
      for (const path of ['', '/evidence']) {
        expect((await as(keys[0], 'GET', `/tokens/${own}${path}`)).status, path).to.equal(200);
        const unseen = await as(keys[0], 'GET', `/tokens/${other}${path}`);
        const missing = await as(keys[0], 'GET', `/tokens/${hex(5n)}${path}`);
        expect([...answered(unseen), unseen.message]).to.deep.equal([...answered(missing), missing.message]);
      }
      const party = `eip155:${CHAIN}:${parties[0]?.toLowerCase()}`;
      const named = await as<Page>(keys[0], 'GET', '/events/stream');
      const { id = '' } = JSON.parse(named.body.events[0]?.body ?? '') as ServiceEvent;
      expect((await as(keys[0], 'GET', `/events/${id}`)).status, party).to.equal(200);
      expect(answered(await as(keys[0], 'GET', `/events/${eventOf(tokens[1])}`))).to.deep.equal([
        404,
        'EVENT_UNKNOWN',
      ]);
    });

    it('has subscriptions of its own, which get the events of its scope', async () => {
      const sink = await api.sink();
      const made = await subscribe(keys[0], sink, { config: { startFrom: 'beginning' } });
      expect(made.status, made.message).to.equal(201);
      const { id } = made.body;
      await eventually('the deliveries', () => sink.deliveries.length > 0);
      await mintDirectly(api.local, String(parties[1]));
      const latest = await mintDirectly(api.local, String(parties[0]));
      await eventually('the newest', () => tokensOf(bodiesAt(sink)).has(String(latest.tokenId)));
      expect(tokensOf(bodiesAt(sink))).to.deep.equal(new Set([tokens[0], latest.tokenId].map(String)));
      // The other one sees neither the subscription nor its deliveries.
      for (const [method, path] of [
        ['GET', `/subscriptions/${id}`],
        ['PUT', `/subscriptions/${id}`],
        ['DELETE', `/subscriptions/${id}?force=true`],
        ['POST', `/subscriptions/${id}/test`],
        ['GET', `/subscriptions/${id}/deliveries`],
        ['GET', '/subscriptions/default'],
        ['GET', `/events/stream?subscription=${id}`],
      ] as const)
        expect(
          answered(await as(keys[1], method, path, method === 'PUT' ? {} : undefined)),
          path,
        ).to.deep.equal([404, 'SUBSCRIPTION_UNKNOWN']);
      for (const path of ['/subscriptions', '/deliveries', '/events'])
        expect((await as<object[]>(keys[1], 'GET', path)).body, path).to.deep.equal([]);
      const listed = await as<{ id: string }[]>(keys[0], 'GET', '/subscriptions');
      expect(listed.body.map((one) => one.id)).to.deep.equal([id]);
      const ofOwn = await as<{ subscription: string }[]>(keys[0], 'GET', '/deliveries');
      expect(new Set(ofOwn.body.map((one) => one.subscription))).to.deep.equal(new Set([id]));
      // What it got can be sent again as it is.
      const { body } = await as(keys[0], 'GET', `/subscriptions/${id}`);
      expect((await as(keys[0], 'PUT', `/subscriptions/${id}`, body)).status).to.equal(200);
    });

    it('sees positions of pages that say nothing of others, and are of no use to them', async () => {
      const { headers } = await as(keys[0], 'GET', '/events?limit=1');
      const [, next = ''] = /<(.*)>/.exec(headers.get('link') ?? '') ?? [];
      expect(next).to.match(/^\/events\?limit=1&after=[\w-]{80,}$/);
      expect((await as(keys[0], 'GET', next)).status).to.equal(200);
      for (const path of [next, '/events?after=1'])
        expect(answered(await as(keys[1], 'GET', path))).to.deep.equal([400, 'QUERY_INVALID']);
    });

    it('may do what it names, and nothing for operators', async () => {
      const { key } = await make({ name: 'reader', scope: { tokens: [tokenOf(tokens[0])] } });
      const sink = await api.sink();
      expect(answered(await subscribe(key, sink))).to.deep.equal([403, 'KEY_MAY_NOT']);
      for (const [method, path] of [
        ['GET', '/registries'],
        ['GET', '/keys'],
        ['POST', '/keys'],
        ['POST', '/console/api/links'],
      ] as const)
        expect(
          answered(await as(keys[0], method, path, method === 'POST' ? {} : undefined)),
          path,
        ).to.deep.equal([403, 'KEY_MAY_NOT']);
      const ofService = { types: ['com.service.etr.operations.wallet_low'] };
      expect(answered(await subscribe(keys[0], sink, ofService))).to.deep.equal([
        400,
        'SUBSCRIPTION_INVALID',
      ]);
      expect((await as<Page>(key, 'GET', '/events/stream')).body.events).to.have.length(5);
    });

    it('is listed with its last use, and not shown again', async () => {
      const { body } = await api.call<{ keys: { id: string; usedAt: string | null; isLive: boolean }[] }>(
        'GET',
        '/keys',
      );
      const own = body.keys.find(({ id }) => id === ids[0]);
      expect(own?.usedAt).to.match(/:00:00\.000Z$/);
      expect(own?.isLive).to.equal(true);
      const pages: string[] = [];
      for (let path = '/keys?limit=1'; path !== '';) {
        const page = await api.call<typeof body>('GET', path);
        pages.push(...page.body.keys.map(({ id }) => id));
        path = /<(.*)>/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
      }
      expect(pages).to.deep.equal(body.keys.map(({ id }) => id));
      expect(JSON.stringify(body)).not.to.contain(String(keys[0]));
    });

    it('is refused with a wrong body: the message names the member', async () => {
      const wrong = async (members: object): Promise<string> => {
        const body = { name: 'any', expiresAt: FAR, scope: { tokens: [tokenOf(5n)] }, ...members };
        const { status, code, message } = await api.call('POST', '/keys', body);
        expect([status, code]).to.deep.equal([400, 'KEY_INVALID']);
        return message.split(' ')[0] ?? '';
      };
      expect(await wrong({ name: '' })).to.equal('/name');
      expect(await wrong({ scope: {} })).to.equal('/scope');
      expect(await wrong({ scope: { parties: ['0x1'] } })).to.equal('/scope/parties/0');
      expect(await wrong({ scope: { registries: [tokenOf(5n)] } })).to.equal('/scope/registries/0');
      expect(await wrong({ scope: { tokens: [tokenOf(5n).replace(/\/.*/, '')] } })).to.equal(
        '/scope/tokens/0',
      );
      expect(await wrong({ may: ['all'] })).to.equal('/may/0');
      expect(await wrong({ expiresAt: '2001-01-01T00:00:00Z' })).to.equal('/expiresAt');
      expect(await wrong({ expiresAt: 'soon' })).to.equal('/expiresAt');
      expect(answered(await api.call('DELETE', '/keys/none'))).to.deep.equal([404, 'KEY_UNKNOWN']);
    });

    it('that is revoked leaves its subscriptions, paused, to the next key of its owner', async () => {
      const [{ id } = { id: '' }] = (await as<{ id: string }[]>(keys[0], 'GET', '/subscriptions')).body;
      expect((await api.call('DELETE', `/keys/${ids[0]}`)).status).to.equal(204);
      expect(answered(await as(keys[0], 'GET', '/subscriptions'))).to.deep.equal([401, 'ACCESS_KEY_WRONG']);
      const stateOf = async (): Promise<unknown> =>
        (await api.call<{ config: { state: string } }>('GET', `/subscriptions/${id}`)).body.config.state;
      expect(await stateOf()).to.equal('paused');
      const again = { name: 'party 1', may: ['read', 'subscribe'] };
      const wider = { ...again, expiresAt: FAR, scope: { parties: parties.map((one) => `eip155:1:${one}`) } };
      const { key: other } = await make(wider);
      expect((await as<object[]>(other, 'GET', '/subscriptions')).body).to.deep.equal([]);
      const { key } = await make({ ...again, scope: { parties: [`eip155:${CHAIN}:${parties[0]}`] } });
      const listed = await as<{ id: string }[]>(key, 'GET', '/subscriptions');
      expect(listed.body.map((one) => one.id)).to.deep.equal([id]);
    });

    it('of the console reads everything, and changes nothing', async () => {
      expect((await as<Page>(READ_KEY, 'GET', '/events/stream')).body.events.length).to.be.greaterThan(5);
      expect((await as(READ_KEY, 'GET', '/registries')).status).to.equal(200);
      expect(answered(await as(READ_KEY, 'POST', '/keys', {}))).to.deep.equal([403, 'KEY_READ_ONLY']);
    });

    const tokenOf = (tokenId: bigint | undefined): string =>
      `urn:service:${CHAIN}:${api.local.registryAddress}/${tokenId}`;
    const bodiesAt = ({ deliveries }: RecordingReceiver): string[] =>
      deliveries.map(({ body }) => body.toString());
  });
