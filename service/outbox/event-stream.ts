import type { Kysely } from 'kysely';
import { CursorExpiredError, RequestError } from '../base/errors';
import type { RegistryName } from '../base/registry-name';
import type { Schema } from '../database/schema';
import { sourceOf, type CloudEvent } from '../events/cloud-event';
import type { EventRules } from '../events/select-events';
import { registryOfFeed } from './feeds';
import { ANNOUNCED_BODY, judgedBody, type JudgedEvent } from './stored-events';
import type { Cursors, StreamPlace } from './stream-cursor';

/**
 * Terms of fetching:
 *
 * - stream: the events of a feed in the order of their positions, in which they were committed. It has what
 *   a subscriber with retractions gets who receives everything at once: retractions of all orphans.
 * - cursor: the text of a place, which has a position in each stream. The client keeps it, and nothing is
 *   stored of clients that fetch.
 */

/** The stream of a feed. */
interface Stream {
  /** Key of the feed. */
  readonly feed: number;
  readonly registry: RegistryName;
  /** The position of the last event. */
  readonly last: number;
  /** The position before the first event. */
  readonly purged: number;
}

/** The streams of the current feed of each registry, and of operational events. */
export interface Streams {
  readonly current: readonly Stream[];
  /** Grows with each event of any feed. */
  readonly total: number;
}

/** Reads the ends of all streams, or of some: one row for each feed. */
export async function readStreams(
  db: Kysely<Schema>,
  some?: readonly Pick<Stream, 'feed'>[],
): Promise<Streams> {
  const feeds = await db
    .selectFrom('feeds')
    .select(['id as feed', 'feed as name', 'last_position as last', 'purged_position as purged'])
    .$if(some !== undefined, (query) => query.where('id', 'in', some?.map(({ feed }) => feed) ?? []))
    .orderBy('opened_at')
    .orderBy('feeds.feed')
    .execute();
  const streams = feeds.map(({ name, ...feed }) => ({ ...feed, registry: registryOfFeed(name) }));
  const current = new Map(streams.map((stream) => [stream.registry, stream]));
  return {
    current: [...current.values()].sort((one, other) => one.feed - other.feed),
    total: feeds.reduce((sum, { last }) => sum + last, 0),
  };
}

/** The events that are fetched. */
export interface Fetched {
  /** A cursor; `now`: the ends of the streams. Undefined: their beginnings. */
  after?: string | undefined;
  rules: EventRules;
  limit: number;
}

/** Events in the order of their streams. */
export interface StreamPage {
  events: { body: string; cursor: string }[];
  /** Goes on after all that was looked at. */
  cursor: string;
  /** Whether nothing was left. */
  isEnd: boolean;
}

/** Rows that are looked at for a page: few of them may be wanted. */
const MOST_ROWS = 2_000;
/** Rows per statement, of which each counts as some: a page looks at a bounded number of streams. */
const STEP = 200;
const LEAST_STEP = 20;
/** Bytes of a page. Its last event may exceed them. */
const MOST_BYTES = 4 * 1024 * 1024;

/**
 * Reads a page of the streams.
 *
 * @throws RequestError CURSOR_INVALID; CursorExpiredError if events after the cursor were purged.
 */
export async function readStream(
  db: Kysely<Schema>,
  cursors: Cursors,
  { current }: Streams,
  { after, rules, limit }: Fetched,
): Promise<StreamPage> {
  const streams = current.filter(({ registry }) => rules.mayHave(sourceOf(registry)));
  const start = beginningOf(cursors, streams, after);
  expectKept(cursors, start, streams);
  const positions = new Map(start.positions);
  const positionIn = ({ feed }: Pick<Stream, 'feed'>): number => positions.get(feed) ?? 0;
  let { turn } = start;
  const events: StreamPage['events'] = [];
  const room = { rows: MOST_ROWS, events: limit, bytes: MOST_BYTES };
  const isFull = (): boolean => Object.values(room).some((left) => left <= 0);
  const isLater = ({ feed }: Stream): boolean => feed >= start.turn;
  for (const stream of [...streams.filter(isLater), ...streams.filter((one) => !isLater(one))])
    while (positionIn(stream) < stream.last && !isFull()) {
      const { feed, last } = stream;
      turn = feed + 1;
      const most = Math.min(STEP, Math.max(room.events, LEAST_STEP));
      const rows = await rowsAfter(db, stream, positionIn(stream), rules, most);
      for (const row of rows) {
        if (isFull()) break;
        positions.set(feed, row.position ?? last);
        if (!isWanted(row, rules)) continue;
        const cursor = cursors.write({ positions, turn });
        events.push({ body: row.body, cursor });
        room.events--;
        room.bytes -= row.body.length + cursor.length;
      }
      // Some positions have no event.
      if (rows.length < most && !isFull()) positions.set(feed, last);
      room.rows -= Math.max(rows.length, LEAST_STEP);
    }
  // A purge may have removed events while they were read.
  const looked = streams.filter((one) => positionIn(one) > (start.positions.get(one.feed) ?? 0));
  const present = looked.length > 0 ? (await readStreams(db, looked)).current : [];
  if (after === undefined && !isKept(start, present))
    return readStream(db, cursors, await readStreams(db), { after, rules, limit });
  expectKept(cursors, start, present);
  return {
    events,
    // A place is written in another way each time. A client sees by its own cursor that there was nothing.
    cursor: after && after !== 'now' && looked.length === 0 ? after : cursors.write({ positions, turn }),
    isEnd: streams.every((one) => positionIn(one) >= one.last),
  };
}

/** The place after which reading begins, with a position in each of these streams. */
function beginningOf(cursors: Cursors, streams: readonly Stream[], after: Fetched['after']): StreamPlace {
  const isText = after !== undefined && after !== 'now';
  const given: StreamPlace = isText ? (cursors.read(after) ?? refuse()) : { positions: new Map(), turn: 0 };
  const first = ({ last, purged }: Stream): number => (after === 'now' ? last : isText ? 0 : purged);
  const all = new Map(streams.map((one) => [one.feed, first(one)]));
  for (const [feed, position] of given.positions) all.set(feed, position);
  // Its database was replaced by an older copy: the next events would have positions that it has passed.
  if (streams.some(({ feed, last }) => (all.get(feed) ?? 0) > last)) refuse();
  return { ...given, positions: new Map([...all].sort(([one], [other]) => one - other)) };
}

function refuse(): never {
  const message =
    'The parameter after is no cursor of this service, or of a time that an older copy of its database ' +
    'does not know. Leave it out, or begin with after=now.';
  throw new RequestError('CURSOR_INVALID', message);
}

/** Whether no event after the place was purged. */
function isKept({ positions }: StreamPlace, streams: readonly Stream[]): boolean {
  return streams.every(({ feed, purged }) => (positions.get(feed) ?? 0) >= purged);
}

/** @throws CursorExpiredError with the first cursor that goes on. */
function expectKept(cursors: Cursors, place: StreamPlace, streams: readonly Stream[]): void {
  if (isKept(place, streams)) return;
  const positions = new Map(place.positions);
  for (const { feed, purged } of streams) positions.set(feed, Math.max(purged, positions.get(feed) ?? 0));
  throw new CursorExpiredError(cursors.write({ positions, turn: place.turn }));
}

/** Reads rows of a stream up to its end as it was read. */
function rowsAfter(
  db: Kysely<Schema>,
  { feed, last }: Stream,
  position: number,
  { hasRetractions }: EventRules,
  most: number,
) {
  return db
    .selectFrom('events')
    .select(['events.position', 'events.type', 'events.body', ANNOUNCED_BODY.as('announced')])
    .where('events.feed', '=', feed)
    .where('events.position', '>', position)
    .where('events.position', '<=', last)
    .$if(!hasRetractions, (query) => query.where('events.audience', '=', 'all'))
    .orderBy('events.position')
    .limit(most)
    .execute();
}

/** A retraction is for those who want its event. If nothing of that is kept, for all who see everything. */
function isWanted(row: JudgedEvent, { wants, isScoped }: EventRules): boolean {
  const body = judgedBody(row);
  return body === null ? !isScoped : wants(JSON.parse(body) as CloudEvent);
}
