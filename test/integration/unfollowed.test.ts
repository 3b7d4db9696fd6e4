import { expect } from 'chai';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime } from '../../service/base/time';
import { registryName } from '../../service/base/registry-name';
import { createDatabaseJournal } from '../../service/journal/journal';
import { mintingRightOf } from '../../service/journal/issuance';
import { createMetrics } from '../../service/observability/metrics';
import { unfollowedOf, type Followed } from '../../service/observability/unfollowed';
import { openFeed, registryOfFeed } from '../../service/outbox/feeds';
import { giveUpRegistry, storeRegistry } from '../../service/followed-registries/stored-registries';
import { describeOnEngines, openState } from '../helpers/database/engines';
import { preparedDocument, SCOPE } from '../helpers/database/prepared-documents';
import {
  eventIn,
  openSampleFeed,
  record,
  SAMPLE_FEED,
  SAMPLE_REGISTRY,
} from '../helpers/database/sample-feed';

const NONE: Followed = { chainId: 31337, registries: [], scope: undefined };
const NOTHING = { deliveries: [], issuances: [] };
const REGISTRY = registryName(31337, SAMPLE_REGISTRY.registryAddress);
/** No event of this registry waits, but its later events would not be delivered either. */
const DELIVERED = registryName(31337, `0x${'7d'.repeat(20)}`);
const ISSUED_IN = registryName(SCOPE.chainId, SCOPE.registryAddress);

describeOnEngines(
  'the list of unfollowed registries',
  (on, engine) => {
    before(async () => {
      const { database } = on;
      const feed = await openSampleFeed(database);
      await record(database, feed, 3, [eventIn(1, 1n), eventIn(2, 1n), eventIn(3, 2n)], 0);
      await openFeed(database.db, `${DELIVERED}:0123456789abcdef`, 7, 1);
      const journal = createDatabaseJournal(database, SCOPE, systemTime);
      for (let document = 0; document < 2; document++) await journal.add(preparedDocument(10));
      const failed = preparedDocument(10);
      await journal.add(failed);
      await journal.failed(failed.tokenId, { code: 'MINT_REVERTED', message: 'no' });
    });

    it('has every registry with its undelivered events, next block and unfinished issuances', async () => {
      expect(await unfollowedOf(on.database, NONE)).to.deep.equal({
        deliveries: [
          { registry: REGISTRY, undelivered: 3, nextBlock: 4 },
          { registry: DELIVERED, undelivered: 0, nextBlock: 7 },
        ],
        issuances: [{ registry: ISSUED_IN, issuer: SCOPE.issuer, unfinished: 2 }],
      });
    });

    it('has nothing that a setting follows, but has another issuer of the same registry', async () => {
      const registries = [REGISTRY, DELIVERED, ISSUED_IN];
      expect(await unfollowedOf(on.database, { ...NONE, registries, scope: SCOPE })).to.deep.equal(NOTHING);
      const scope = { ...SCOPE, issuer: 'did:web:other.example' };
      const { deliveries, issuances } = await unfollowedOf(on.database, { ...NONE, registries, scope });
      expect([deliveries.length, issuances.length]).to.deep.equal([0, 1]);
    });

    it('has nothing of a local network that NET does not name', async () => {
      expect(await unfollowedOf(on.database, { ...NONE, chainId: 80002 })).to.deep.equal(NOTHING);
    });

    it('has nothing of a registry that was given up, until it is not given up any more', async () => {
      const { registryAddress: address, chainId } = SAMPLE_REGISTRY;
      const registry = { chainId, address, network: 'localhost' };
      const giveUp = (isForced: boolean) => giveUpRegistry(on.database, registry, { isForced, now: 1 });
      expect(await giveUp(false)).to.deep.equal({ isGivenUp: false, undelivered: 3 });
      expect((await unfollowedOf(on.database, NONE)).deliveries).to.have.length(2);
      expect(await giveUp(true)).to.deep.equal({ isGivenUp: true, undelivered: 3 });
      const { deliveries } = await unfollowedOf(on.database, NONE);
      expect(deliveries.map((one) => one.registry)).to.deep.equal([DELIVERED]);
      const again = { ...registry, startBlock: undefined, confirmations: undefined, addedAt: 2 };
      await storeRegistry(on.database, again);
      expect((await unfollowedOf(on.database, NONE)).deliveries).to.have.length(2);
    });

    // Only one process uses a database of SQLite.
    if (engine === 'SQLite') return;

    it('has nothing that another process works on', async () => {
      const other = await openState(on.state);
      const held = [
        await other.takeRight(registryOfFeed(SAMPLE_FEED)),
        await other.takeRight(mintingRightOf(SCOPE)),
      ];
      const { deliveries, issuances } = await unfollowedOf(on.database, NONE);
      expect([deliveries.map(({ registry }) => registry), issuances]).to.deep.equal([[DELIVERED], []]);
      for (const right of held) await right?.release();
      expect((await unfollowedOf(on.database, NONE)).deliveries).to.have.length(2);
      await other.close();
    });
  },
  { isSharedByTests: true },
);

describe('the metrics of unfollowed registries', () => {
  const text = (conditions: Parameters<typeof metrics>[0]['conditions']) =>
    metrics({
      feeds: [],
      outboxes: [],
      issuing: undefined,
      conditions,
      subscriptions: undefined,
      now: 0,
    });
  const metrics = createMetrics(createLifecycle());

  it('count the work of each registry, and disappear when there is none or it is not known', async () => {
    const seen = { observer: 'settings', since: 1 };
    const shown = await text([
      ...['did:web:a', 'did:web:b'].map((issuer) => ({
        ...seen,
        what: 'documents_unfollowed' as const,
        subject: issuer,
        detail: { registry: ISSUED_IN, issuer, unfinished: 2 },
      })),
      { ...seen, what: 'feed_unfollowed', subject: 'feed', detail: { registry: REGISTRY, undelivered: 3 } },
    ]);
    expect(shown).to.contain(`\netr_unfollowed_deliveries{registry="${REGISTRY}"} 3\n`);
    expect(shown).to.contain(`\netr_unfollowed_mints{registry="${ISSUED_IN}"} 4\n`);
    expect(await text([])).not.to.match(/^etr_unfollowed_/m);
    expect(await text(undefined)).not.to.match(/^etr_unfollowed_/m);
  });
});
