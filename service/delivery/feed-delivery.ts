import { createHash } from 'node:crypto';
import type { Lifecycle } from '../base/lifecycle';
import { type Time, pause, repeat } from '../base/time';
import { messageOf } from '../base/errors';
import { loggedOnce, type Logger } from '../base/logger';
import type { Database } from '../database/database';
import { changesSince, NO_VERSION } from '../outbox/changes';
import { channelsOf, type Channel } from '../outbox/channels';
import { changeSink, dueChannels, releaseLeases } from '../outbox/claim-queues';
import { fillChannel } from '../outbox/enqueue-stored';
import { type AttemptOptions, createWebhookClient, type WebhookTarget } from './attempt-delivery';
import type { Deliverers } from './deliverers';
import type { DeliverySlots } from './delivery-slots';
import { startDeliveryWorker, type DeliveryWorker } from './worker';

/** The delivery side of a feed: a worker for each channel. */
export interface FeedDelivery {
  /** Delivers this feed, and no other, from now on. */
  start(feed: string): Promise<void>;
  /** Call it after subscriptions have changed. When it resolves, no delivery begins under the old ones. */
  refresh(): Promise<void>;
  /** Call it after events were enqueued for these channels, or for any if none are given. */
  wake(channels?: readonly number[]): void;
  /** Releases the claimed deliveries: nothing may be sent until `wake` is called. */
  hold(): void;
  /** Resolves when the deliveries under way are settled. */
  stop(): Promise<void>;
}

/** Parts of a feed's delivery. */
export interface FeedDeliveryOptions {
  database: Database;
  time: Time;
  logger: Logger;
  slots: DeliverySlots;
  deliverers: Deliverers;
  /** The webhook that a channel delivers to. Undefined: its events wait in the outbox. */
  targetOf: (channel: Channel) => WebhookTarget | undefined;
  /** Stores events again that were removed because they were old. */
  restorePurged(
    feed: number,
    blocks: { fromBlock: number; upTo: number },
    signal: AbortSignal,
  ): Promise<void>;
  lifecycle: Lifecycle;
  registry: AttemptOptions['registry'];
}

/** How often due deliveries are looked for. It bounds the delay of events that another process enqueued. */
const LOOK_EVERY_MS = 1_000;
/** Pause before a subscription is read, or filled, again after the node or the database failed. */
const AGAIN_AFTER_MS = 2_000;

/** A channel that is delivered. */
interface Running {
  channel: Channel;
  worker: DeliveryWorker;
  /** Its last deliveries are under way. It is started again only after they end. */
  ended?: Promise<void>;
}

/** Delivers each channel of a feed to its webhook. The channels do not wait for each other. */
export function createFeedDelivery(options: FeedDeliveryOptions): FeedDelivery {
  const { database, time, logger, slots, deliverers } = options;
  const running = new Map<number, Running>();
  /** Channels without a sink in this process. */
  const lacking = new Set<number>();
  /** The channels whose stored events are being enqueued. */
  const filling = new Map<number, Promise<void>>();
  const stopping = new AbortController();
  let deliveredFeed: string | undefined;
  /** The version of the subscriptions that the channels have. */
  let version = NO_VERSION;
  let waking: { stop(): Promise<void> } | undefined;
  /** Changes follow each other: two at once would start a channel twice. */
  let lastChange: Promise<unknown> = Promise.resolve();

  function inTurn<T>(change: () => Promise<T>): Promise<T> {
    const next = lastChange.then(change);
    lastChange = next.catch(() => undefined);
    return next;
  }

  async function startChannel(feed: string, channel: Channel): Promise<void> {
    const target = options.targetOf(channel);
    if (target === undefined) {
      lacking.add(channel.channel);
      return;
    }
    lacking.delete(channel.channel);
    // A SQLite database belongs to this process alone, so a holder of a lease has ended. On PostgreSQL other
    // processes may hold leases.
    if (database.engine === 'sqlite') await releaseLeases(database.db, channel.channel, time.now());
    const sinkHash = createHash('sha256').update(target.url).digest('hex');
    if (channel.sinkHash !== null && channel.sinkHash !== sinkHash)
      await changeSink(database, { channel: channel.channel, sinkHash, now: time.now() });
    if (stopping.signal.aborted) return;
    const worker = startDeliveryWorker({
      ...options,
      ...target,
      channel: channel.channel,
      sentTo: { changedAt: channel.changedAt, sinkHash },
      client: createWebhookClient(target, time, slots.idle),
      slots: slots.newShare(channel.failingSince !== null),
      share: () => deliverers.shareOf(feed, channel.channel, target.maxConcurrentDeliveries),
      random: Math.random,
      logger: channel.definition === null ? logger : logger.child({ subscription: channel.subscription }),
    });
    running.set(channel.channel, { channel, worker });
  }

  /** A slow receiver may take long to answer its last delivery, and no other channel waits for that. */
  function endChannel(one: Running): Promise<void> {
    return (one.ended ??= one.worker.stop().finally(() => running.delete(one.channel.channel)));
  }

  /** Reads the subscriptions that have changed, and follows their changes. */
  async function refresh(): Promise<void> {
    if (deliveredFeed === undefined || stopping.signal.aborted) return;
    const changes = await changesSince(database.db, version);
    // Without a change, events may have been enqueued again.
    if (changes.subjects?.size === 0) await wakeDue(deliveredFeed);
    else await follow(deliveredFeed, changes.subjects);
    version = changes.version;
  }

  /** Starts and stops channels as these subscriptions, or all if none are named, are now. */
  async function follow(feed: string, names?: ReadonlySet<string>): Promise<void> {
    if (stopping.signal.aborted) return;
    const channels = await channelsOf(database.db, feed, names && [...names]);
    const stored = new Map(channels.map((channel) => [channel.channel, channel]));
    if (names === undefined) for (const channel of lacking) if (!stored.has(channel)) lacking.delete(channel);
    for (const delivered of running.values()) {
      const { channel, subscription, changedAt, definition } = delivered.channel;
      if (delivered.ended || names?.has(subscription) === false) continue;
      const now = stored.get(channel);
      if (now?.changedAt !== changedAt || now.definition !== definition) {
        const again = (): void => followLater(feed, subscription);
        void endChannel(delivered).then(again, again);
        continue;
      }
      delivered.channel = now;
      if (now.state !== 'active') delivered.worker.hold();
    }
    for (const channel of channels) if (!running.has(channel.channel)) await startChannel(feed, channel);
    for (const channel of channels)
      if (channel.isFilling && !filling.has(channel.channel)) {
        const filled = fill(feed, channel).finally(() => filling.delete(channel.channel));
        filling.set(channel.channel, filled);
      }
    if (names === undefined) await wakeDue(feed);
    else wake(stored.keys());
  }

  /** Enqueues the stored events of a channel that began in the past. */
  async function fill(name: string, { channel, feed, subscription }: Channel): Promise<void> {
    const { signal } = stopping;
    try {
      while (!signal.aborted) {
        const filled = await fillChannel(database, { feed, channel }, time.now());
        if (typeof filled === 'object') await options.restorePurged(feed, filled.purged, signal);
        running.get(channel)?.worker.wake();
        if (filled === 'filled') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.warn({ error }, `stored events cannot be enqueued now: ${messageOf(error)}`);
      void pause(time, AGAIN_AFTER_MS, signal).then(() => followLater(name, subscription));
    }
  }

  function wake(channels: Iterable<number> = running.keys()): void {
    for (const channel of channels) running.get(channel)?.worker.wake();
  }

  /**
   * Wakes the channels that have something to send. One statement finds all of them: with a statement for
   * each channel, hundreds of idle subscriptions would keep the database busy.
   */
  async function wakeDue(feed: string): Promise<void> {
    if (running.size > 0) wake(await dueChannels(database.db, feed, time.now()));
  }

  function followLater(feed: string, subscription: string): void {
    // The feed may be another one by then, which has read all subscriptions.
    inTurn(async () => feed === deliveredFeed && follow(feed, new Set([subscription]))).catch(
      (error: unknown) => {
        logger.warn({ error }, `a changed subscription cannot be read now: ${messageOf(error)}`);
        void pause(time, AGAIN_AFTER_MS, stopping.signal).then(() => followLater(feed, subscription));
      },
    );
  }

  async function endAll(): Promise<void> {
    await Promise.all([...running.values()].map(endChannel));
    if (deliveredFeed !== undefined) await deliverers.leave(deliveredFeed);
  }

  const fit = (): boolean => [...running.values()].every(({ worker }) => worker.isWithinShare());

  return {
    start: (feed) =>
      inTurn(async () => {
        // A start may have failed midway. A standby process may have opened the feed before its channels were
        // stored.
        const isStarted = feed === deliveredFeed && waking !== undefined && running.size > 0;
        if (isStarted || stopping.signal.aborted) return;
        await waking?.stop();
        waking = undefined;
        if (feed !== deliveredFeed) await endAll();
        deliveredFeed = feed;
        await deliverers.join(feed, { fit, lacking });
        version = NO_VERSION;
        await refresh();
        const look = loggedOnce(logger, 'due deliveries cannot be looked for', () => wakeDue(feed));
        waking = repeat(time, look, LOOK_EVERY_MS);
      }),
    refresh: () => inTurn(refresh),
    wake,
    hold() {
      for (const { worker } of running.values()) worker.hold();
    },
    async stop() {
      stopping.abort();
      await inTurn(async () => {
        await waking?.stop();
        await endAll();
      });
      await Promise.all(filling.values());
    },
  };
}
