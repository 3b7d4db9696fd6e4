import { expect } from 'chai';
import type { EventDetails, KnownToken } from '../../service/answers/views';
import type { Overview } from '../../service/console/views';
import type { FoundDelivery } from '../../console/requests/api';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import { MINT_EVENTS } from '../../devnet/bill-of-lading';
import { mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { ENGINES } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import {
  API,
  openConsolePage,
  type ConsoleAnswer,
  type ConsolePage,
} from '../helpers/processes/console-page';
import {
  ADMIN_API_KEY,
  startSubscribedService,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';
import { accept, type Answer } from '../helpers/receiver/recording-receiver';

const refuse: Answer = (_delivery, response) => void response.writeHead(500).end();
const GIVES_UP_SOON = { retry: { initialDelayMs: 50, maxDelayMs: 50, giveUpAfterMs: 300 } };
const NEVER_GIVES_UP = { retry: { initialDelayMs: 60_000, maxDelayMs: 60_000 } };

for (const engine of ENGINES)
  describe(`the console on ${engine}`, () => {
    let own: SubscribedService | undefined;
    let api: SubscribedService;
    let page: ConsolePage;
    let account: string;

    before(async function () {
      own = await startSubscribedService(engine);
      if (own === undefined) return this.skip();
      api = own;
      account = await api.local.account(1);
      page = openConsolePage(api.service.url);
      await page.logIn(ADMIN_API_KEY);
    });
    after(() => own?.stop());

    const get = async <Body>(path: string): Promise<Body> => {
      const { status, body } = await page.call<Body>('GET', path);
      expect(status, path).to.equal(200);
      return body;
    };
    const overview = (): Promise<Overview> => get(`${API}/overview`);
    const deliveries = (query: string): Promise<FoundDelivery[]> => get(`/deliveries?${query}`);

    it('shows how far each registry is read, and what is wrong', async () => {
      await api.caughtUp();
      const head = await api.local.client.getBlockNumber();
      await eventually(
        'the overview is new',
        async () => (await overview()).registries[0]?.headBlock === head,
      );
      const { registries, problems, issuing, subscriptions } = await overview();
      expect(registries).to.have.lengthOf(1);
      expect(registries[0]).to.include({
        network: 'localhost',
        chainId: 31337,
        registry: api.local.registryAddress.toLowerCase(),
        state: 'following',
        headBlock: head,
        readUpTo: head,
        lagBlocks: 0,
        waiting: 0,
        deadLetters: 0,
      });
      expect(issuing).to.equal(null);
      expect(subscriptions).to.deep.equal({ active: 1, paused: 0, gone: 0 });
      expect(problems.map(({ message }) => message)).to.deep.equal([
        'Documents cannot be issued: WALLET_PRIVATE_KEY is not configured.',
      ]);
    });

    it('answers 304 to the ETag of an overview until something moved, and logs both at debug', async () => {
      const ask = (etag = ''): Promise<ConsoleAnswer<Overview>> =>
        page.call('GET', `${API}/overview`, undefined, { 'If-None-Match': etag });
      const first = await ask();
      const etag = first.headers.get('ETag') ?? '';
      expect(etag).to.match(/^"[\w-]{43}"$/);
      await eventually('nothing moves', async () => {
        const [one, two] = [await ask(), await ask()];
        return (await ask(two.headers.get('ETag') ?? '')).status === 304 && one.status === 200;
      });
      await mintDirectly(api.local, account);
      await eventually('all is delivered', () => api.ofSettings.deliveries.length >= MINT_EVENTS.length);
      const moved = await eventually('another revision', async () => {
        const { status, body } = await ask(etag);
        return status === 200 && body.revision !== first.body.revision ? body : undefined;
      });
      expect(moved.at).to.be.greaterThan(first.body.at);
      const logged = api.service.log.filter(({ path }) => path === `${API}/overview`);
      expect(new Set(logged.map(({ level }) => level))).to.deep.equal(new Set(['debug']));
    });

    it('shows what a subscriber has not got, in each state, and why', async () => {
      const [gives, waits] = [await api.sink(), await api.sink()];
      for (const sink of [gives, waits]) sink.answerWith(refuse);
      const dying = await api.subscribe(gives, { config: GIVES_UP_SOON });
      const failing = await api.subscribe(waits, { config: NEVER_GIVES_UP });
      const { tokenId } = await mintDirectly(api.local, account);
      const shownId = tokenIdHexOf(BigInt(tokenId));
      await eventually('dead letters', async () => (await deliveries('state=dead')).length >= 5);

      const dead = await deliveries('state=dead&limit=100');
      for (const one of dead)
        expect(one).to.include({ subscription: dying.id, state: 'dead', tokenIdHex: shownId });
      const [failed, ...more] = await deliveries(`state=failed&subscription=${failing.id}`);
      expect(more).to.deep.equal([]);
      expect(failed).to.include({
        type: 'com.service.etr.escrow_created',
        tokenId: String(tokenId),
      });
      expect(failed?.attempts.map(({ attempt, status }) => ({ attempt, status }))).to.deep.equal([
        { attempt: 1, status: 500 },
      ]);
      expect(Date.parse(failed?.nextAttemptAt ?? '')).to.be.greaterThan(Date.now());
      const behind = await deliveries(`state=waiting&subscription=${failing.id}`);
      expect(behind.map(({ type, state }) => ({ type, state }))).to.have.deep.members(
        MINT_EVENTS.filter((type) => type !== 'escrow_created').map((type) => ({
          type: `com.service.etr.${type}`,
          state: 'waiting',
        })),
      );
      expect(
        new Set((await deliveries('state=delivered')).map(({ subscription }) => subscription)),
      ).to.deep.equal(new Set(['default']));
      const all = await page.call<FoundDelivery[]>('GET', '/deliveries?limit=3');
      expect(all.body).to.have.lengthOf(3);
      expect(all.headers.get('Link')).to.match(/^<\/deliveries\?limit=3&after=\d+\.\d+>; rel="next"$/);

      // Counting may take at most a twentieth of the time, so the figures may be old.
      const { problems } = await eventually('the overview counts them', async () => {
        const now = await overview();
        const { deadLetters, waiting } = now.registries[0] ?? {};
        return deadLetters === 5 && waiting === 5 ? now : undefined;
      });
      expect(problems[0]).to.include({ severity: 'error', href: '#/deliveries?state=dead' });

      const details = await get<EventDetails>(`/events/${dead[0]?.id}`);
      expect(details.tokenIdHex).to.equal(shownId);
      const ofDying = details.deliveries.find(({ subscription }) => subscription === dying.id);
      expect(ofDying?.state).to.equal('dead');
      expect(ofDying?.attempts.length).to.be.greaterThan(0);
      expect(ofDying?.attempts[0]).to.include({ attempt: 1, status: 500 });

      gives.answerWith(accept);
      const again = await page.call('POST', `/subscriptions/${dying.id}/redeliver`, { dead: true });
      expect(again.status).to.equal(202);
      await eventually('they are delivered', async () => (await deliveries('state=dead')).length === 0);
      for (const { id } of [dying, failing])
        expect((await page.call('DELETE', `/subscriptions/${id}?force=true`)).status).to.equal(200);
    });

    it('shows the headers that are sent, without those that are secret', async () => {
      const sink = await api.sink();
      const { id } = await api.subscribe(sink, {
        protocolsettings: { headers: { 'X-Tenant': 'acme-secret' } },
        config: { standardWebhooks: true },
      });
      await mintDirectly(api.local, account);
      await eventually('a delivery', () => sink.deliveries.length > 0);
      const [first] = sink.deliveries;
      const event = first?.event;
      const { deliveries: ways } = await get<EventDetails>(`/events/${event?.id}`);
      const { headers = {} } = ways.find(({ subscription }) => subscription === id) ?? {};
      expect(headers).to.include({ 'x-tenant': '•••', 'webhook-id': event?.id });
      expect(headers).to.include({ 'X-Service-Signature': '•••', 'webhook-signature': '•••' });
      expect(headers['X-Service-Key-Id']).to.equal(first?.headers['x-service-key-id']);
      expect(JSON.stringify(ways)).not.to.contain('acme-secret');
      expect((await page.call('DELETE', `/subscriptions/${id}?force=true`)).status).to.equal(200);
    });

    it('shows the operations of a token with their events and deliveries', async () => {
      const minted = await mintDirectly(api.local, account);
      await transferHolder(api.local, minted, { from: account, to: await api.local.account(2) });
      const ask = (): Promise<KnownToken> => get(`/tokens/${minted.tokenId}`);
      await eventually('everything is delivered', async () => {
        const events = (await ask()).endorsements.flatMap((one) => one.events);
        return (
          events.length === 6 && events.every(({ deliveries: [one] = [] }) => one?.state === 'delivered')
        );
      });
      const { endorsements, state, next, isWhole, registry } = await ask();
      expect(endorsements.map(({ operation }) => operation)).to.deep.equal(['mint', 'transferHolder']);
      expect(endorsements[0]?.events.map(({ type }) => type)).to.deep.equal(
        MINT_EVENTS.map((type) => `com.service.etr.${type}`),
      );
      expect(endorsements[1]?.events).to.have.lengthOf(1);
      expect(endorsements[1]?.events[0]?.deliveries).to.deep.equal([
        { subscription: 'default', state: 'delivered', attempts: 1, error: null },
      ]);
      expect({ state: state.state, isWhole, registry: registry.toLowerCase() }).to.deep.equal({
        state: 'in escrow',
        isWhole: true,
        registry: api.local.registryAddress.toLowerCase(),
      });
      expect(next.map(({ operation }) => operation)).to.include('transferHolder');
      expect((await page.call('GET', '/tokens/12345')).code).to.equal('TOKEN_UNKNOWN');
    });
  });
