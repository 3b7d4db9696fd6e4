import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Lifecycle } from '../base/lifecycle';
import type { SigningKeys } from '../base/signing-keys';
import { loggedOnce, type Logger } from '../base/logger';
import { createWakeableSleep, repeat, type Time } from '../base/time';
import { inBatches } from '../database/batches';
import type { Database } from '../database/database';
import { signatureOf } from '../delivery/attempt-delivery';
import { compileRules, type Selection } from '../events/select-events';
import { readStream, readStreams, type Fetched, type StreamPage, type Streams } from '../outbox/event-stream';
import { readCursors, type Cursors } from '../outbox/stream-cursor';
import { signingKeysIn } from './manage-subscriptions';
import type { SubscriptionConfig } from './subscription';

/** The rules by which events are fetched: those of a subscription, or of the request. */
export interface Selecting extends Selection {
  readonly config: Pick<SubscriptionConfig, 'startFrom' | 'contentType' | 'retractions'>;
}

/** The requested part of the stream. `wait`: seconds. `retractions`: undefined if the rules decide it. */
type Wanted = Omit<Fetched, 'rules'> & { wait: number; retractions?: boolean | undefined };

/** An event as a webhook would have it. */
interface FetchedEvent {
  body: string;
  /** The values of the headers X-Service-Signature and X-Service-Key-Id. */
  signature: string;
  keyId: string;
  contentType: string;
  cursor: string;
}

/** Gives the recorded events to those who ask for them. */
export interface EventFetching {
  /**
   * Resolves as soon as there are events, or the time is over, or the caller has left.
   *
   * @throws RequestError CURSOR_INVALID, SIGNING_KEY_MISSING; CursorExpiredError.
   */
  fetch(
    this: void,
    selecting: Selecting,
    wanted: Wanted,
    left: AbortSignal,
  ): Promise<{ events: FetchedEvent[]; cursor: string }>;
  /** Ends all waits. */
  stop(): Promise<void>;
}

interface FetchingParts {
  config: { signingKeys: SigningKeys | undefined };
  database: Pick<Database, 'db'>;
  time: Time;
  lifecycle: Lifecycle;
  logger: Logger;
}

/** How often the events of other processes are looked for. */
const LOOK_EVERY_MS = 500;
/** Signatures that are made without a pause: a thousand would hold the thread for 50 ms. */
const SIGNED_AT_ONCE = 50;

/** All who wait share one look at the streams, until something was recorded. */
export function createEventFetching(parts: FetchingParts): EventFetching {
  const { config, time, lifecycle, logger } = parts;
  const { db } = parts.database;
  let cursors: Cursors | undefined;
  let latest: Streams = { current: [], total: 0 };
  /** Requests that may wait. */
  let patient = 0;
  let isStopped = false;
  /** Each ends a wait under way, which has seen so many events. A signal for each would take 3.5 KiB. */
  const waits = new Map<() => void, number>();

  const look = loggedOnce(logger, 'new events cannot be looked for now', async () => {
    if (patient === 0) return;
    const streams = await readStreams(db);
    if (streams.total > latest.total) latest = streams;
    for (const [wake, seen] of waits) if (latest.total > seen) wake();
  });

  /** Resolves when more was recorded. Undefined: the time is over, or the caller has left. */
  async function newer(seen: number, ms: number, left: AbortSignal): Promise<Streams | undefined> {
    if (latest.total <= seen && !isStopped && !left.aborted) {
      const { sleep, wake } = createWakeableSleep(time);
      waits.set(wake, seen);
      left.addEventListener('abort', wake);
      await sleep(ms);
      left.removeEventListener('abort', wake);
      waits.delete(wake);
    }
    return latest.total > seen ? latest : undefined;
  }

  async function fetchPage(fetched: Fetched, waitMs: number, left: AbortSignal): Promise<StreamPage> {
    const until = time.elapsed() + waitMs;
    const writing = (cursors ??= await readCursors(db));
    let streams: Streams | undefined = await readStreams(db);
    let page = await readStream(db, writing, streams, fetched);
    while (page.events.length === 0 && time.elapsed() < until) {
      // An early end would tell how many events of others there are.
      if (page.isEnd) streams = await newer(streams.total, until - time.elapsed(), left);
      // SQLite gives others no turn between two pages.
      await nextTurn();
      if (streams === undefined || left.aborted) break;
      page = await readStream(db, writing, streams, { ...fetched, after: page.cursor });
    }
    return page;
  }

  const onRecorded = (): void => void look();
  lifecycle.on('recorded', onRecorded);
  const looking = repeat(time, look, LOOK_EVERY_MS);
  return {
    async fetch(selecting, { wait, retractions, ...part }, left) {
      const signingKeys = signingKeysIn(config);
      const { contentType } = selecting.config;
      const compiled = compileRules(JSON.stringify(selecting));
      const rules = { ...compiled, hasRetractions: retractions ?? compiled.hasRetractions };
      patient++;
      const page = await fetchPage({ ...part, rules }, wait * 1_000, left).finally(() => patient--);
      const signed = ({ body, cursor }: StreamPage['events'][number]): FetchedEvent => {
        const { signature, key } = signatureOf(signingKeys, Buffer.from(body), time.now());
        return { body, signature, keyId: key.id, contentType, cursor };
      };
      const sign = (some: StreamPage['events']) => nextTurn(some.map(signed));
      return { events: await inBatches(page.events, sign, SIGNED_AT_ONCE), cursor: page.cursor };
    },
    async stop() {
      isStopped = true;
      lifecycle.off('recorded', onRecorded);
      for (const wake of waits.keys()) wake();
      await looking.stop();
    },
  };
}
