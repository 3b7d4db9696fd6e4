import { expect } from 'chai';
import type {
  DeliveryList,
  DeliveryView,
  EventDetails,
  Overview,
  TokenView,
} from '../../service/console/views';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import { MINT_EVENTS } from '../../devnet/walk-token';
import { mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { ENGINES } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { openConsolePage, type ConsolePage } from '../helpers/processes/console-page';
import { openConsoleStream } from '../helpers/processes/console-stream';
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
    const overview = (): Promise<Overview> => get('overview');
    const deliveries = async (query: string): Promise<DeliveryView[]> =>
      (await get<DeliveryList>(`deliveries?${query}`)).deliveries;

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

    it('tells open pages what moved, once a second at most, until the page logs out', async () => {
      const other = openConsolePage(api.service.url);
      await other.logIn(ADMIN_API_KEY);
      const stream = await openConsoleStream(api.service.url, other.cookie);
      await eventually('the first overview', () => stream.overviews.length > 0);
      const before = stream.overviews.at(-1)?.revision;
      const began = Date.now();
      await mintDirectly(api.local, account);
      await eventually('another revision', () => stream.overviews.at(-1)?.revision !== before);
      await eventually('all is delivered', () => api.ofSettings.deliveries.length >= MINT_EVENTS.length);
      expect(stream.overviews.length).to.be.at.most(2 + Math.ceil((Date.now() - began) / 1_000));
      expect((await other.call('DELETE', 'session')).status).to.equal(204);
      await stream.ended;
      expect(stream.events.at(-1)).to.equal('end');
    });

    it('tells 50 pages at once, five of each session, and refuses others', async () => {
      const others = Array.from({ length: 11 }, () => openConsolePage(api.service.url));
      for (const other of others) await other.logIn(ADMIN_API_KEY);
      const [own, ...more] = others.map(({ cookie }) => cookie);
      const first = await openConsoleStream(api.service.url, own ?? '');
      const cookies = [own, ...more].flatMap((cookie = '') => Array<string>(5).fill(cookie)).slice(0, 51);
      const streams = await Promise.all(cookies.map((cookie) => openConsoleStream(api.service.url, cookie)));
      await first.ended;
      expect(first.events).not.to.include('end');
      const statuses = streams.map(({ status }) => status).sort();
      expect(statuses).to.deep.equal([...Array<number>(50).fill(200), 503]);
      for (const one of streams) one.close();
      await Promise.all(streams.map(({ ended }) => ended));
      await eventually('there is room again', async () => {
        const again = await openConsoleStream(api.service.url, page.cookie);
        again.close();
        return again.status === 200;
      });
    });

    it('shows what a subscriber has not got, in each state, and why', async () => {
      const [gives, waits] = [await api.sink(), await api.sink()];
      for (const sink of [gives, waits]) sink.answerWith(refuse);
      const dying = await api.subscribe(gives, { config: GIVES_UP_SOON });
      const failing = await api.subscribe(waits, { config: NEVER_GIVES_UP });
      const { tokenId } = await mintDirectly(api.local, account);
      const shownId = tokenIdHexOf(BigInt(tokenId));
      await eventually('dead letters', async () => (await deliveries('state=dead')).length >= 5);

      const dead = await deliveries('state=dead&limit=200');
      for (const one of dead)
        expect(one).to.include({ subscription: dying.id, state: 'dead', tokenId: shownId, status: 500 });
      const [failed, ...more] = await deliveries(`state=failed&subscription=${failing.id}`);
      expect(more).to.deep.equal([]);
      expect(failed).to.include({
        type: 'escrow_created',
        attempts: 1,
        status: 500,
        nextAttemptAt: failed?.nextAttemptAt,
      });
      expect(failed?.nextAttemptAt).to.be.greaterThan(Date.now());
      const behind = await deliveries(`state=waiting&subscription=${failing.id}`);
      expect(behind.map(({ type, state }) => ({ type, state }))).to.have.deep.members(
        MINT_EVENTS.map((type) => ({ type, state: type === 'escrow_created' ? 'failed' : 'waiting' })),
      );
      expect(
        new Set((await deliveries('state=delivered')).map(({ subscription }) => subscription)),
      ).to.deep.equal(new Set(['default']));
      const all = await get<DeliveryList>('deliveries?limit=3');
      expect(all.deliveries).to.have.lengthOf(3);
      expect(all.hasMore).to.equal(true);

      // Counting may take at most a twentieth of the time, so the figures may be old.
      const { problems } = await eventually('the overview counts them', async () => {
        const now = await overview();
        const { deadLetters, waiting } = now.registries[0] ?? {};
        return deadLetters === 5 && waiting === 5 ? now : undefined;
      });
      expect(problems[0]).to.include({ severity: 'error', href: '#/deliveries?state=dead' });

      const details = await get<EventDetails>(`events/${dead[0]?.eventId}`);
      expect(details.tokenId).to.equal(shownId);
      const ofDying = details.deliveries.find(({ subscription }) => subscription === dying.id);
      expect(ofDying?.state).to.equal('dead');
      expect(ofDying?.attempts.length).to.be.greaterThan(0);
      expect(ofDying?.attempts[0]).to.include({ attempt: 1, status: 500 });

      gives.answerWith(accept);
      const again = await page.call('POST', `subscriptions/${dying.id}/redeliver`, { dead: true });
      expect(again.status).to.equal(202);
      await eventually('they are delivered', async () => (await deliveries('state=dead')).length === 0);
      for (const { id } of [dying, failing])
        expect((await page.call('DELETE', `subscriptions/${id}?force=true`)).status).to.equal(200);
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
      const { deliveries: ways } = await get<EventDetails>(`events/${event?.id}`);
      const { headers = {} } = ways.find(({ subscription }) => subscription === id) ?? {};
      expect(headers).to.include({ 'x-tenant': '•••', 'webhook-id': event?.id });
      expect(headers).to.include({ 'X-Service-Signature': '•••', 'webhook-signature': '•••' });
      expect(headers['X-Service-Key-Id']).to.equal(first?.headers['x-service-key-id']);
      expect(JSON.stringify(ways)).not.to.contain('acme-secret');
      expect((await page.call('DELETE', `subscriptions/${id}?force=true`)).status).to.equal(200);
    });

    it('shows the operations of a token with their events and deliveries', async () => {
      const minted = await mintDirectly(api.local, account);
      await transferHolder(api.local, minted, { from: account, to: await api.local.account(2) });
      const ask = async (): Promise<TokenView> => {
        const { status, body } = await page.call<TokenView>('POST', 'token', {
          tokenId: String(minted.tokenId),
        });
        expect(status).to.equal(200);
        return body;
      };
      await eventually('everything is delivered', async () => {
        const events = (await ask()).operations.flatMap((one) => one.events);
        return events.length === 6 && events.every(({ deliveries: [one] }) => one?.state === 'delivered');
      });
      const { operations, state, next, isWhole, registry } = await ask();
      expect(operations.map(({ operation }) => operation)).to.deep.equal(['mint', 'transferHolder']);
      expect(operations[0]?.events.map(({ type }) => type)).to.deep.equal(MINT_EVENTS);
      expect(operations[1]?.events).to.have.lengthOf(1);
      expect(operations[1]?.events[0]?.deliveries).to.deep.equal([
        { subscription: 'default', state: 'delivered', attempts: 1, lastError: null },
      ]);
      expect({ state, isWhole, registry: registry.toLowerCase() }).to.deep.equal({
        state: 'in escrow',
        isWhole: true,
        registry: api.local.registryAddress.toLowerCase(),
      });
      expect(next.map(({ operation }) => operation)).to.include('transferHolder');
      const unknown = await page.call<TokenView>('POST', 'token', { tokenId: '12345' });
      expect(unknown.body).to.include({ state: 'not minted' });
    });

    it('ends streams at the end of the session, and a stop does not wait for them', async () => {
      const clock = { time: Date.now(), now: () => clock.time };
      await api.restart({}, undefined, { consoleClock: clock });
      const { url } = api.service;
      const ending = openConsolePage(url);
      await ending.logIn(ADMIN_API_KEY);
      const first = await openConsoleStream(url, ending.cookie);
      clock.time += 12 * 3_600_000;
      await first.ended;
      expect(first.events.at(-1)).to.equal('end');
      await ending.logIn(ADMIN_API_KEY);
      const second = await openConsoleStream(url, ending.cookie);
      await eventually('an overview', () => second.overviews.length > 0);
      const began = Date.now();
      await api.restart();
      expect(Date.now() - began).to.be.lessThan(5_000);
      await second.ended;
      expect(second.events.at(-1)).to.equal('end');
    });
  });
