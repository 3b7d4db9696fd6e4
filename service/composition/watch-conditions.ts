import { codeOf, messageOf } from '../base/errors';
import { repeat } from '../base/time';
import { aboutFeed, OPERATIONS, type Condition } from '../events/conditions';
import { readGivenUp } from '../followed-registries/stored-registries';
import { isMintingRight, mintingRightOf } from '../journal/issuance';
import { sightOfFeed, sightOfIssuing } from '../observability/observed-conditions';
import { shownConditions } from '../observability/problems';
import type { TakeSnapshot } from '../observability/snapshot';
import { unfollowedOf } from '../observability/unfollowed';
import {
  conditionsOfChannels,
  distinctConditions,
  forgetConditions,
  noteSight,
  readConditions,
  tryStoring,
  type SeenCondition,
  type Sight,
} from '../outbox/conditions';
import type { Core } from './core';
import type { DeliveredFeed, EventDelivery } from './event-delivery';
import type { Issuing } from './issuing';

/** How often the conditions are compared with what is seen. */
const EVERY_MS = 1_000;
/** Work that no setting follows takes longer to find, and changes rarely. */
const UNFOLLOWED_EVERY = 10;
/** An idle service stores nothing else. */
const TRY_STORING_EVERY = 10;
/** Deliveries that fail for this long are shown, long before the subscription counts as failing. */
const SLOW_AFTER_MS = 60_000;
const REPORT_WITHIN_MS = 500;

/** The two lines of the service. `issuing`: undefined if settings are missing. */
export interface Lines {
  readonly issuing: Issuing | undefined;
  readonly eventDelivery: EventDelivery;
}

/** Tries whether anything can be stored. */
export class StorageTrial {
  /** The condition that no table can keep: nothing can be stored. */
  unwritable: SeenCondition | undefined;

  constructor(private readonly core: Pick<Core, 'database' | 'time' | 'logger'>) {}

  /** The database can be read: a failure is one of writing alone. */
  async succeeds(): Promise<boolean> {
    const { database, time, logger } = this.core;
    const about = { what: 'database_unwritable', subject: 'database' } as const;
    try {
      await tryStoring(database.db);
      if (this.unwritable) logger.info(about, 'a condition ended');
      this.unwritable = undefined;
    } catch (error) {
      const detail = { code: codeOf(error) };
      if (!this.unwritable) logger.warn({ ...about, error }, `nothing can be stored: ${messageOf(error)}`);
      this.unwritable ??= { ...about, observer: 'database', since: time.now(), detail };
    }
    return this.unwritable === undefined;
  }
}

/**
 * Stores the conditions that this process sees, once a second, and queues the events that tell of them. A
 * process sees the feeds that it reads, and issuing if it mints: one that stands by says nothing. The
 * conditions of a process that died are compared by the one that takes over.
 */
export function watchConditions(
  { config, database, time, logger }: Pick<Core, 'config' | 'database' | 'time' | 'logger'>,
  { issuing, eventDelivery }: Lines,
  takeSnapshot: TakeSnapshot,
  storage: StorageTrial,
): { stop(): Promise<void> } {
  const { db } = database;
  const scope = issuing?.scope;
  let rounds = 0;
  let isFailing = false;

  function tell(conditions: readonly Condition[]): void {
    for (const { what, subject, detail, message, remedy } of shownConditions(conditions, time.now()))
      logger.warn({ what, subject, ...detail }, `${message} ${remedy}`);
  }

  async function note(observer: string, sight: Sight, seen: readonly SeenCondition[]): Promise<void> {
    const { begun, ended } = await noteSight(database, observer, { sight, seen, now: time.now() });
    if (rounds > 0) tell(begun);
    for (const { what, subject } of ended) logger.info({ what, subject }, 'a condition ended');
  }

  async function noteFeeds(seen: readonly SeenCondition[]): Promise<void> {
    const read: DeliveredFeed[] = [];
    for (const feed of eventDelivery.feeds())
      if ((await feed.running?.follower.isReader()) !== false) read.push(feed);
    const now = time.now();
    const failingBefore = now - config.subscriptionFailingAfterMinutes * 60_000;
    const slowBefore = Math.max(now - SLOW_AFTER_MS, failingBefore);
    const all = new Map<string, boolean>([[OPERATIONS, true]]);
    for (const { running, webhook } of read)
      if (running?.follower.opened !== undefined) all.set(running.follower.opened, webhook !== undefined);
    const ofChannels = await conditionsOfChannels(db, all, { slowBefore, failingBefore, now });
    for (const feed of read) {
      const { conditions, unknown = [] } = sightOfFeed(feed, now);
      const ofFeed = ofChannels.get(feed.running?.follower.opened ?? '');
      const seenOfFeed = [...conditions, ...(ofFeed ?? [])];
      const notKnown = ofFeed ? unknown : [...unknown, ...OF_CHANNELS];
      await note(feed.name, { conditions: seenOfFeed, unknown: notKnown }, seen);
    }
    await note(OPERATIONS, { conditions: ofChannels.get(OPERATIONS) ?? [] }, seen);
  }

  async function noteUnfollowed(seen: readonly SeenCondition[]): Promise<void> {
    const names = eventDelivery.feeds().map(({ name }) => name);
    const followed = { chainId: config.network.chainId, registries: names, scope };
    const { deliveries, issuances } = await unfollowedOf(database, followed);
    const since = time.now();
    const ofFeeds = deliveries.map((detail): Condition => {
      return { what: 'feed_unfollowed', subject: aboutFeed(detail.registry).subject, since, detail };
    });
    const ofDocuments = issuances.map((detail): Condition => {
      const subject = `mints/${detail.registry}/${detail.issuer}`;
      return { what: 'documents_unfollowed', subject, since, detail };
    });
    await note(`settings/${config.network.chainId}`, { conditions: [...ofFeeds, ...ofDocuments] }, seen);
    const left = [...deliveries.map(({ registry }) => registry), ...(await readGivenUp(db))];
    for (const observer of left)
      if (seen.some((one) => one.observer === observer)) await forgetConditions(db, 'observer', observer);
  }

  /** The conditions of documents that an earlier run issued, with other settings. */
  async function forgetOtherWallets(seen: readonly SeenCondition[]): Promise<void> {
    const own = scope && mintingRightOf(scope);
    for (const right of new Set(seen.map(({ observer }) => observer)))
      if (isMintingRight(right) && right !== own && !(await database.isRightTaken(right)))
        await forgetConditions(db, 'observer', right);
  }

  async function look(): Promise<void> {
    const seen = await readConditions(db);
    const isTried = isFailing || storage.unwritable !== undefined || rounds % TRY_STORING_EVERY === 0;
    if (isTried && !(await storage.succeeds())) return;
    await noteFeeds(seen);
    if (issuing?.isMinting()) {
      const { now, issuing: report } = await takeSnapshot(REPORT_WITHIN_MS, []);
      const own = issuing.scope;
      if (report) await note(mintingRightOf(own), sightOfIssuing(report, own, now), seen);
    }
    const since = time.now();
    const isMissing = database.isRemoved();
    const missing = { what: 'database_missing', subject: 'database', since, detail: {} } as const;
    await note('database', { conditions: isMissing ? [missing] : [] }, seen);
    if (rounds % UNFOLLOWED_EVERY === 0) await noteUnfollowed(seen);
    if (rounds++ > 0) return;
    await forgetOtherWallets(seen);
    // Those that last since an earlier run, too.
    tell(distinctConditions(await readConditions(db)));
  }

  return repeat(
    time,
    async () => {
      try {
        await look();
        isFailing = false;
      } catch (error) {
        if (!isFailing) logger.warn({ error }, `conditions cannot be stored: ${messageOf(error)}`);
        isFailing = true;
      }
    },
    EVERY_MS,
  );
}

/** Not known while a feed is not open. */
const OF_CHANNELS = [
  'subscription_failing',
  'subscription_gone',
  'subscription_slow',
  'subscription_paused',
  'dead_letters',
  'feed_unreceived',
] as const;
