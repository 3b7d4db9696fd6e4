import { isDeepStrictEqual } from 'node:util';
import { historyOf, standing } from '../../../client/events';
import type { ChainEvent, Retraction } from '../../../client/events';
import { CursorExpiredError } from '../../../service/base/errors';
import type { Database } from '../../../service/database/database';
import { compileRules } from '../../../service/events/select-events';
import { readStream, readStreams } from '../../../service/outbox/event-stream';
import { readCursors } from '../../../service/outbox/stream-cursor';
import type { History } from '../scenario';
import type { SeededRandom } from '../seeded-random';

type Fetched = ChainEvent | Retraction;

/** A client that keeps what it has fetched, each id once, and goes on with any cursor that it had. */
export class FetchingClient {
  /** By id, in the order of arrival. */
  readonly #events = new Map<string, Fetched>();
  #cursors: (string | undefined)[] = [undefined];
  #hasLost = false;

  constructor(
    private readonly options: { hasRetractions: boolean },
    private readonly random: SeededRandom,
    private readonly run: History,
  ) {}

  /** Fetches some pages. */
  async live(database: Database): Promise<void> {
    for (let pages = this.random.below(5); pages > 0; pages--) {
      if (this.random.chance(0.2)) {
        this.#cursors = this.#cursors.slice(0, 1 + this.random.below(this.#cursors.length));
        this.run.count('cursors used again');
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
    const known = [...this.#events.values()];
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
    for (const source of new Set([...this.#events.values()].map((event) => event.source))) {
      const [own, all] = [this, other].map((client) =>
        [...client.#events.values()].filter((event) => event.source === source).map(({ id }) => id),
      );
      this.#expect(`the end of ${source}`, own, all?.slice(-(own?.length ?? 0)));
    }
  }

  /** Fetches a page. Returns whether it was the last one. */
  async #fetch(database: Database): Promise<boolean> {
    const { db } = database;
    const limit = 1 + this.random.below(12);
    const config = { startFrom: 'beginning', retractions: this.options.hasRetractions };
    const fetched = { after: this.#cursors.at(-1), limit, rules: compileRules(JSON.stringify({ config })) };
    const page = await readStream(db, await readCursors(db), await readStreams(db), fetched).catch(
      (error: unknown) => {
        if (!(error instanceof CursorExpiredError)) throw error;
        this.#hasLost = true;
        this.#events.clear();
        return { events: [], cursor: error.cursor, isEnd: false };
      },
    );
    this.run.count('events fetched', page.events.length);
    for (const { body, cursor } of page.events) {
      const event = JSON.parse(body) as Fetched;
      if (!this.#events.has(event.id)) this.#events.set(event.id, event);
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

/** A log is the same event, whichever block it is in. */
function keyOf({ type, source, subject, data }: Fetched): string {
  return JSON.stringify([type, source, subject, 'payload' in data ? data.payload : data.retracts]);
}

function withoutId({ type, time, data }: ChainEvent): unknown[] {
  const { blockNumber, transactionHash, logIndex, payload } = data;
  return [type, time, blockNumber, transactionHash, logIndex, payload];
}
