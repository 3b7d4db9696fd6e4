import { isDeepStrictEqual } from 'node:util';
import { historyOf, standing } from '../../../client/events';
import type { ChainEvent, Retraction } from '../../../client/events';
import { CursorExpiredError } from '../../../service/base/errors';
import type { Database } from '../../../service/database/database';
import { compileRules } from '../../../service/events/select-events';
import { readStream, readStreams, type StreamPage, type Streams } from '../../../service/outbox/event-stream';
import { readCursors, type Cursors } from '../../../service/outbox/stream-cursor';
import type { History } from '../scenario';
import type { SeededRandom } from '../seeded-random';
import { NO_RULE, type StreamRule, type SubscribedRule } from './subscribed-rule';

type Fetched = ChainEvent | Retraction;
type Positions = ReadonlyMap<number, number>;

/** A page as it came, and what it must be compared with. Positions are by the keys of feeds. */
interface SeenPage {
  /** Undefined: it began with the first event that there was. */
  from: Positions | undefined;
  to: Positions;
  /** The last positions that were purged before it was read, and after. */
  purgedBefore: Positions;
  purgedAfter: Positions;
  rule: StreamRule;
  ids: readonly string[];
}

/** An event, and its place in the stream of a feed. */
interface Placed {
  event: Fetched;
  feed: number;
  position: number;
}

/** A client that keeps what it has fetched, each id once, and goes on with any cursor that it had. */
export class FetchingClient {
  /** By id, in the order of arrival. */
  readonly #events = new Map<string, Placed>();
  readonly #pages: SeenPage[] = [];
  #cursors: (string | undefined)[] = [undefined];
  #hasLost = false;

  /** @param rule selects the events; absent: all of them. */
  constructor(
    private readonly options: { hasRetractions: boolean; rule?: SubscribedRule },
    private readonly random: SeededRandom,
    private readonly run: History,
  ) {}

  /** Fetches some pages. Its rule may be replaced between two of them, by another process. */
  async live(database: Database, other: Database): Promise<void> {
    for (let pages = this.random.below(5); pages > 0; pages--) {
      if (this.random.chance(0.2)) {
        this.#cursors = this.#cursors.slice(0, 1 + this.random.below(this.#cursors.length));
        this.run.count('cursors used again');
      }
      if (this.options.rule !== undefined && this.random.chance(0.3)) {
        await this.options.rule.replace(other);
        this.run.count('rules replaced');
      }
      await this.#fetch(database);
    }
  }

  /** Fetches all that there is, and forgets earlier cursors. */
  async catchUp(database: Database): Promise<void> {
    while (!(await this.#fetch(database)));
    this.#cursors = this.#cursors.slice(-1);
  }

  /** Expects what the chain has. @param due its events, in the order of each token. */
  compareWith(due: readonly ChainEvent[]): void {
    if (this.#hasLost) this.run.violation('a client lost events that it had not passed');
    const known = [...this.#events.values()].map(({ event }) => event);
    const retracted = known.flatMap(({ data }) => ('retracts' in data ? data.retracts : []));
    const invented = retracted.filter((id) => !this.#events.has(id));
    this.#expect('what is retracted and was never there', invented, []);
    this.#expect('what is retracted twice', retracted.length - new Set(retracted).size, 0);
    if (!this.options.hasRetractions) {
      const keys = known.map(keyOf);
      this.#expect('what came twice', keys.length - new Set(keys).size, 0);
      this.#expect(
        'what never came',
        due.map(keyOf).filter((key) => !keys.includes(key)),
        [],
      );
      return;
    }
    for (const name of new Set([...known, ...due].map(historyOf))) {
      const own = standing(known.filter((event) => historyOf(event) === name));
      const wanted = due.filter((event) => historyOf(event) === name);
      this.#expect(`what holds of ${name}`, own.map(withoutId), wanted.map(withoutId));
    }
  }

  /** Expects the last of what another client, which is always up to date, got from each registry. */
  compareWithEndOf(other: FetchingClient): void {
    if (this.#hasLost) this.run.count('late clients that lost events');
    for (const feed of new Set([...this.#events.values()].map((placed) => placed.feed))) {
      const [own, all] = [this, other].map((client) =>
        [...client.#events].filter(([, placed]) => placed.feed === feed).map(([id]) => id),
      );
      this.#expect(`the end of ${feed}`, own, all?.slice(-(own?.length ?? 0)));
    }
  }

  /**
   * Expects each page to have, in order, just the events between its cursors that its rule selects.
   *
   * @param other a client that is always up to date, and has no rule.
   */
  comparePagesWith(other: FetchingClient): void {
    const all = [...other.#events.values()].sort((one, next) => one.position - next.position);
    const originalOf = (event: Fetched): Fetched =>
      ('retracts' in event.data ? other.#events.get(event.data.retracts)?.event : undefined) ?? event;
    for (const page of this.#pages)
      for (const feed of new Set([...all.map((placed) => placed.feed), ...page.to.keys()])) {
        const after = (least: Positions): number => (page.from ?? least).get(feed) ?? 0;
        const isPurged = (page.purgedAfter.get(feed) ?? 0) > 0;
        const inPage = all.filter(
          (one) =>
            one.feed === feed &&
            one.position > after(page.purgedBefore) &&
            one.position <= (page.to.get(feed) ?? 0),
        );
        const got = page.ids.filter((id) => other.#events.get(id)?.feed === feed);
        const needed = (one: Placed): boolean =>
          page.rule.wants(originalOf(one.event)) && one.position > after(page.purgedAfter);
        // The rule does not judge a retraction whose event was purged.
        const isAllowed = (one: Placed): boolean =>
          page.rule.wants(originalOf(one.event)) || (isPurged && 'retracts' in one.event.data);
        const ids = new Set(got);
        const wanted = inPage.filter((one) => needed(one) || (ids.has(one.event.id) && isAllowed(one)));
        const idsOf = wanted.map(({ event }) => event.id);
        this.#expect(`a page of feed ${feed} under ${page.rule.text}`, got, idsOf);
      }
    const unknown = this.#pages.flatMap(({ ids }) => ids.filter((id) => !other.#events.has(id)));
    this.#expect('what only one client has', unknown, []);
    this.run.count('pages compared', this.#pages.length);
  }

  /** Fetches a page. Returns whether it was the last one. */
  async #fetch(database: Database): Promise<boolean> {
    const { db } = database;
    const limit = 1 + this.random.below(12);
    const { hasRetractions, rule } = this.options;
    const everything = JSON.stringify({ config: { startFrom: 'beginning', retractions: hasRetractions } });
    const rules = compileRules(rule === undefined ? everything : await rule.definition(database));
    const after = this.#cursors.at(-1);
    const [cursors, streams] = [await readCursors(db), await readStreams(db)];
    const from = after === undefined ? undefined : positionsIn(cursors, after);
    let page: StreamPage;
    try {
      page = await readStream(db, cursors, streams, { after, limit, rules });
    } catch (error) {
      if (!(error instanceof CursorExpiredError)) throw error;
      const { current } = await readStreams(db);
      if (current.every(({ feed, purged }) => purged <= (from?.get(feed) ?? 0)))
        this.run.violation('a cursor expired although nothing after it was purged');
      this.run.count('cursors expired');
      this.#hasLost = true;
      this.#events.clear();
      this.#cursors.push(error.cursor);
      return false;
    }
    this.run.count('events fetched', page.events.length);
    const fetched = page.events.map(({ body, cursor }) => ({ event: JSON.parse(body) as Fetched, cursor }));
    this.#pages.push({
      from,
      to: positionsIn(cursors, page.cursor),
      purgedBefore: purgedIn(streams),
      purgedAfter: purgedIn(await readStreams(db)),
      rule: rule?.current ?? NO_RULE,
      ids: fetched.map(({ event }) => event.id),
    });
    for (const { event, cursor } of fetched) {
      const feed = streams.current.find(({ registry }) => event.source.endsWith(registry))?.feed ?? 0;
      const position = positionsIn(cursors, cursor).get(feed) ?? 0;
      if (!this.#events.has(event.id)) this.#events.set(event.id, { event, feed, position });
      this.#cursors.push(cursor);
      // It stopped before it kept the rest.
      if (this.random.chance(0.05)) return false;
    }
    this.#cursors.push(page.cursor);
    return page.isEnd;
  }

  #expect(what: string, actual: unknown, wanted: unknown): void {
    if (isDeepStrictEqual(actual, wanted)) return;
    const [is, should] = [JSON.stringify(actual), JSON.stringify(wanted)];
    this.run.violation(
      `${what}${this.options.hasRetractions ? '' : ' (without retractions)'} is\n${is}\nnot\n${should}`,
    );
  }
}

function positionsIn(cursors: Cursors, text: string): Positions {
  return cursors.read(text)?.positions ?? new Map<number, number>();
}

function purgedIn({ current }: Streams): Positions {
  return new Map(current.map(({ feed, purged }) => [feed, purged]));
}

/** A log is the same event, whichever block it is in. */
function keyOf({ type, source, subject, data }: Fetched): string {
  return JSON.stringify([type, source, subject, 'payload' in data ? data.payload : data.retracts]);
}

function withoutId({ type, time, data }: ChainEvent): unknown[] {
  const { blockNumber, transactionHash, logIndex, payload } = data;
  return [type, time, blockNumber, transactionHash, logIndex, payload];
}
