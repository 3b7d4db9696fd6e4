import { execFileSync } from 'node:child_process';
import { createPublicKey, verify, type JsonWebKey } from 'node:crypto';
import { expect } from 'chai';
import type { ServiceEvent } from '../../client/events';
import type { Jwks } from '../../service/base/signing-keys';
import { orUndefined } from '../../service/base/errors';
import { systemTime } from '../../service/base/time';
import { findFeeds } from '../../service/outbox/feeds';
import { purgeEvents } from '../../service/outbox/purge-events';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { ENGINES, openState } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { callService, type ApiAnswer } from '../helpers/processes/create-call';
import { startSubscribedService, type SubscribedService } from '../helpers/processes/subscribed-service';

interface Page {
  events: { body: string; signature: string; keyId: string; contentType: string; cursor: string }[];
  cursor: string;
}

const DAY_MS = 86_400_000;

/** Verifies an Ed25519 signature with the Python package cryptography. */
const IN_PYTHON = `
import base64, json, sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
given = json.load(sys.stdin)
bytes_of = lambda text: base64.urlsafe_b64decode(text + "==")
key = Ed25519PublicKey.from_public_bytes(bytes_of(given["x"]))
key.verify(bytes_of(given["signature"].removeprefix("ed25519=")), given["body"].encode())
print("genuine")
`;

for (const engine of ENGINES)
  describe(`GET /events/stream on ${engine}`, () => {
    let own: SubscribedService | undefined;
    let api: SubscribedService;

    before(async function () {
      own = await startSubscribedService(engine, { CONFIRMATIONS: '0', FINALITY_DEPTH: '1' });
      if (own === undefined) return this.skip();
      api = own;
    });

    const fetchPage = async (query = ''): Promise<ApiAnswer<Page>> =>
      api.call<Page>('GET', `/events/stream?${query}`);
    const fetched = async (query = ''): Promise<Page> => {
      const { status, body, message } = await fetchPage(query);
      expect(status, message).to.equal(200);
      return body;
    };
    const typesOf = ({ events }: Page): string[] =>
      events.map(({ body }) => (JSON.parse(body) as ServiceEvent).type.replace('com.service.etr.', ''));

    it('gives the bytes and the signature of a webhook, which strangers verify', async function () {
      await mintDirectly(api.local, await api.local.account(1));
      await eventually('the deliveries', () => api.ofSettings.deliveries.length === EVENTS_OF_A_MINT);
      const { events } = await fetched();
      const sent = api.ofSettings.deliveries;
      expect(events.map(({ body }) => body)).to.deep.equal(sent.map(({ body }) => body.toString()));
      for (const [index, { signature, keyId, contentType }] of events.entries()) {
        const { headers } = sent[index] ?? {};
        expect(signature).to.equal(headers?.['x-service-signature']);
        expect(keyId).to.equal(headers?.['x-service-key-id']);
        expect(contentType).to.equal(headers?.['content-type']);
      }
      const jwks = (await api.call<Jwks>('GET', '/.well-known/jwks.json')).body;
      const [event] = events;
      const key = jwks.keys.find(({ kid }) => kid === event?.keyId);
      const { body = '', signature = '' } = event ?? {};
      const bytes = Buffer.from(signature.replace('ed25519=', ''), 'base64url');
      const publicKey = createPublicKey({ key: key as unknown as JsonWebKey, format: 'jwk' });
      expect(verify(null, Buffer.from(body), publicKey, bytes)).to.equal(true);
      const hasPython = orUndefined(() => execFileSync('python3', ['-c', 'import cryptography']));
      if (hasPython === undefined) return this.skip();
      const input = JSON.stringify({ x: key?.x, body, signature });
      expect(execFileSync('python3', ['-c', IN_PYTHON], { input }).toString().trim()).to.equal('genuine');
    });

    it('selects by a subscription, or by the rules of the request', async () => {
      const { cursor } = await fetched();
      const { id } = await api.subscribe(await api.sink(), {
        types: ['com.service.etr.minted'],
        config: { contentType: 'application/cloudevents+json' },
      });
      const { tokenId } = await mintDirectly(api.local, await api.local.account(1));
      await mintDirectly(api.local, await api.local.account(2));
      await api.caughtUp();
      const bySubscription = await fetched(`after=${cursor}&subscription=${id}`);
      expect(typesOf(bySubscription)).to.deep.equal(['minted', 'minted']);
      expect(bySubscription.events[0]?.contentType).to.equal('application/cloudevents+json');
      const types = 'types=com.service.etr.minted,com.service.etr.burned';
      expect(typesOf(await fetched(`after=${cursor}&${types}&tokens=${tokenId},5`))).to.deep.equal([
        'minted',
      ]);
      const party = await api.local.account(2);
      expect(typesOf(await fetched(`after=${cursor}&${types}&parties=${party}`))).to.deep.equal(['minted']);
      expect(typesOf(await fetched('source=urn:service:1:0x' + '11'.repeat(20)))).to.deep.equal([]);
    });

    it('answers a client that waits when an event is recorded, and one whose time is over', async () => {
      const { cursor } = await fetched('after=now');
      const waiting = fetched(`after=${cursor}&wait=30&limit=1`);
      await mintDirectly(api.local, await api.local.account(1));
      expect(typesOf(await waiting)).to.have.length(1);
      const end = await fetched(`after=now&wait=1`);
      expect([end.events, (await fetched(`after=${end.cursor}`)).events]).to.deep.equal([[], []]);
    });

    it('needs the key, a cursor of its own, and parameters that it knows', async () => {
      const refused = async (query: string): Promise<unknown[]> => {
        const { status, code } = await fetchPage(query);
        return [status, code];
      };
      const { headers } = await fetchPage();
      expect(headers.get('cache-control')).to.equal('private, no-store');
      expect(await refused('after=AAAA')).to.deep.equal([400, 'CURSOR_INVALID']);
      expect(await refused('subscription=another')).to.deep.equal([404, 'SUBSCRIPTION_UNKNOWN']);
      for (const query of [
        'wait=31',
        'limit=0',
        'limit=1001',
        'types=other',
        'tokens=x',
        'parties=0x1',
        'retractions=1',
      ])
        expect(await refused(query), query).to.deep.equal([400, 'QUERY_INVALID']);
      expect(await refused('subscription=default&tokens=1')).to.deep.equal([400, 'QUERY_INVALID']);
      const { status } = await callService('GET', `${api.service.url}/events/stream`, undefined, {});
      expect(status).to.equal(401);
    });

    it('goes on with any cursor after a restart, and after a purge with the one it is told', async () => {
      const { events, cursor } = await fetched();
      const account = await api.local.account(1);
      await api.restart({}, () => mintDirectly(api.local, account));
      await api.caughtUp();
      expect((await fetched(`after=${cursor}`)).events).to.have.length(EVENTS_OF_A_MINT);
      await mineBlocks(api.local, 3);
      await api.caughtUp();
      await eventually('all deliveries', async () => {
        const { body } = await api.call<unknown[]>('GET', '/deliveries?state=waiting');
        return body.length === 0;
      });
      await api.restart({}, async () => {
        await using database = await openState(api.state);
        for (const feed of await findFeeds(database.db))
          await purgeEvents(systemTime, database, feed, systemTime.now() + DAY_MS);
      });
      const expired = await fetchPage(`after=${events[0]?.cursor}`);
      expect([expired.status, expired.code]).to.deep.equal([410, 'CURSOR_EXPIRED']);
      const end = await fetched(`after=${expired.body.cursor}`);
      await mintDirectly(api.local, account);
      expect((await fetched(`after=${end.cursor}&wait=30`)).events).not.to.deep.equal([]);
    });

    it('ends a wait when the service stops', async () => {
      const waiting = fetched('after=now&wait=30');
      // Its connection comes after that of the request that waits.
      await fetched();
      await api.restart();
      expect((await waiting).events).to.deep.equal([]);
    });
  });
