import { expect } from 'chai';
import type { ServiceEvent } from '../../client/events';
import { keepBlocks } from '../../service/outbox/feeds';
import { systemTime } from '../../service/base/time';
import { purgeEvents } from '../../service/outbox/purge-events';
import { VirtualTime } from '../helpers/virtual-time';
import { describeOnEngines } from '../helpers/database/engines';
import { emptyOutbox } from '../helpers/database/empty-outbox';
import { eventIn, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';
import { eventually } from '../helpers/eventually';
import { ask, type Answer } from '../helpers/isolation-model/caller';
import { ADMIN_KEY, startReplica, type Replica } from '../helpers/isolation-model/replica';
import { hexOf } from '../helpers/isolation-model/sight';

const OWN = `0x${'0a'.repeat(20)}`;
const FAR = '2099-01-01T00:00:00Z';
const OTHER = `0x${'0b'.repeat(20)}`;
/** The events that a page of the stream looks at. */
const LOOKED_AT = 2_000;

interface Page {
  events: { body: string }[];
  cursor: string;
}

describeOnEngines('a key of a party', (on) => {
  const outbox = emptyOutbox(on);
  let service: Replica;
  let time: VirtualTime;
  let id: string;
  let key: string;

  beforeEach(async () => {
    time = new VirtualTime(Date.UTC(2026, 8, 21));
    service = await startReplica(on.database, time);
    ({ id, key } = await make({ parties: [`eip155:31337:${OWN}`] }));
  });
  afterEach(() => service.stop());

  async function make(scope: object): Promise<{ id: string; key: string }> {
    const terms = {
      name: JSON.stringify(scope),
      may: ['read', 'subscribe'],
      expiresAt: '2099-01-01T00:00:00Z',
    };
    const { body } = await ask(service.url, ADMIN_KEY, 'POST', '/keys', { ...terms, scope });
    return body as { id: string; key: string };
  }

  const as = (method: string, path: string, body?: unknown): Promise<Answer> =>
    ask(service.url, key, method, path, body);
  const eventOf = (block: number, party: string, tokenId = 7n) =>
    eventIn(block, tokenId, { payload: { fromHolder: party, toHolder: party, remark: '0x' } });
  const bodiesOf = ({ body }: Answer): ServiceEvent[] =>
    (body as Page).events.map((one) => JSON.parse(one.body) as ServiceEvent);

  it('shows the retraction of an event that it fetched', async () => {
    await outbox.store(1, [eventOf(1, OWN)]);
    await outbox.rewind(0);
    const [event, retraction] = bodiesOf(await as('GET', '/events/stream?retractions=true'));
    expect(retraction?.type).to.equal('com.service.etr.retracted');
    for (const one of [event, retraction])
      expect((await as('GET', `/events/${one?.id}`)).status, one?.type).to.equal(200);
  });

  it('shows the retraction of an event that was mined again, and then purged', async () => {
    await outbox.store(1, [eventOf(1, OWN)]);
    await outbox.deliverAll();
    const { cursor } = (await as('GET', '/events/stream?retractions=true')).body as Page;
    await outbox.rewind(0);
    await outbox.store(1, [eventIn(1, 7n, eventOf(1, OWN), 'b')], 'b');
    await outbox.deliverAll();
    await outbox.store(200, []);
    await keepBlocks(on.database.db, outbox.feed.id, [], 150);
    expect(await purgeEvents(systemTime, on.database, SAMPLE_FEED, outbox.now + 1)).to.equal(1);
    const page = bodiesOf(await as('GET', `/events/stream?retractions=true&after=${cursor}`));
    expect(page.map(({ type }) => type)).to.deep.equal([
      'com.service.etr.retracted',
      'com.service.etr.holder_transfer',
    ]);
    for (const one of page) expect((await as('GET', `/events/${one.id}`)).status, one.type).to.equal(200);
    ({ key } = await make({ parties: [`eip155:31337:${OTHER}`] }));
    expect(bodiesOf(await as('GET', '/events/stream?retractions=true'))).to.deep.equal([]);
    for (const one of page) expect((await as('GET', `/events/${one.id}`)).status).to.equal(404);
  });

  it('does not show a token that a reorganisation took away', async () => {
    await outbox.store(1, [eventOf(1, OWN)]);
    const path = `/tokens/${hexOf(7n)}/evidence?registry=${SAMPLE_REGISTRY.registryAddress}`;
    expect((await as('GET', path)).status).to.equal(200);
    await outbox.deliverAll();
    await outbox.rewind(0);
    expect((await as('GET', path)).status).to.equal(404);
  });

  it('is not told how many events others have when it deletes a subscription that is filled', async () => {
    await outbox.store(1, [eventOf(1, OTHER)]);
    const config = { startFrom: 'beginning' };
    const made = await as('POST', '/subscriptions', {
      sink: 'http://127.0.0.1:1/',
      protocol: 'HTTP',
      config,
    });
    const { id: subscription } = made.body as { id: string };
    const { status, headers } = await as('DELETE', `/subscriptions/${subscription}`);
    expect([status, headers.get('x-undelivered')]).to.deep.equal([200, '0']);
  });

  it('goes on with its cursor after events of other registries were purged', async () => {
    ({ key } = await make({ registries: [`urn:service:31337:${OTHER}`] }));
    const { cursor } = (await as('GET', '/events/stream?after=now')).body as Page;
    await outbox.store(1, [eventOf(1, OTHER)]);
    await on.database.db.updateTable('feeds').set({ purged_position: 1 }).execute();
    for (const source of ['', `&source=urn:service:31337:${SAMPLE_REGISTRY.registryAddress}`])
      expect((await as('GET', `/events/stream?after=${cursor}${source}`)).status).to.equal(200);
  });

  it('waits for its events, however many others have', async () => {
    const foreign = Array.from({ length: LOOKED_AT + 1 }, (_, index) => eventOf(1, OTHER, BigInt(index)));
    await outbox.store(1, foreign);
    await outbox.store(2, [eventOf(2, OWN)]);
    expect(bodiesOf(await as('GET', '/events/stream?wait=1'))).to.have.length(1);
  });

  it('gets nothing any more when it was revoked during a wait', async () => {
    const before = time.dueCount;
    const answered = as('GET', '/events/stream?after=now&wait=30');
    await eventually('it waits', () => time.dueCount > before);
    await ask(service.url, ADMIN_KEY, 'DELETE', `/keys/${id}`);
    await outbox.store(1, [eventOf(1, OWN)]);
    await time.pass(1_000);
    expect((await answered).status).to.equal(401);
  });

  it('is kept out of caches, also when it is refused', async () => {
    for (const path of ['/keys', '/subscriptions/none', '/events?after=1']) {
      const { status, headers } = await as('GET', path);
      expect(headers.get('cache-control'), `${path} ${status}`).to.equal('private, no-store');
      expect(headers.get('vary'), path).to.equal('Authorization, Cookie');
    }
  });

  it('is refused for a chain whose number is not exact', async () => {
    const scope = { parties: [`eip155:9007199254740993:${OWN}`] };
    const terms = { name: 'far', expiresAt: FAR, scope };
    expect((await ask(service.url, ADMIN_KEY, 'POST', '/keys', terms)).code).to.equal('KEY_INVALID');
  });
});
