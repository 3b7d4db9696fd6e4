import { parseTokenId } from '../registry/token-id-forms';
import type { CloudEvent } from './cloud-event';
import { ATTRIBUTES, filtersIn, partiesOf, type Filter, type Selection } from './select-events';

/**
 * Finds the selections that may be true for an event, without comparing the others.
 *
 * A key is a value that a selection needs, such as `party=0x…`. A selection is kept under keys of which each
 * of its events has at least one. A selection that has only `not`, `prefix` or `suffix` has no such keys, and
 * is kept under the one that every event has.
 */
export class SelectionIndex {
  readonly #byKey = new Map<string, Set<number>>();
  readonly #keys = new Map<number, readonly string[]>();

  /** Adds a selection under an id, in the place of the one that has this id. */
  set(id: number, selection: Selection): void {
    this.delete(id);
    const keys = rarest(filtersIn(selection).map(requiredKeys)) ?? [OF_EVERY_EVENT];
    this.#keys.set(id, keys);
    for (const key of keys) {
      const ids = this.#byKey.get(key) ?? new Set();
      this.#byKey.set(key, ids.add(id));
    }
  }

  delete(id: number): void {
    for (const key of this.#keys.get(id) ?? []) {
      const ids = this.#byKey.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#byKey.delete(key);
    }
    this.#keys.delete(id);
  }

  /** The ids of all selections that are true for the event, and of some that are not. */
  candidates(event: CloudEvent): ReadonlySet<number> {
    const found = new Set<number>();
    for (const key of keysOfEvent(event)) for (const id of this.#byKey.get(key) ?? []) found.add(id);
    return found;
  }
}

const OF_EVERY_EVENT = '';

/** Keys of which an event has at least one if a condition is true for it. Undefined: there are none. */
type Keys = readonly string[] | undefined;

function requiredKeys(filter: Filter): Keys {
  if ('exact' in filter)
    return rarest(
      Object.entries(filter.exact).map(([name, value]) =>
        ATTRIBUTES.some((one) => one === name) ? [`${name}=${value}`] : [],
      ),
    );
  if ('all' in filter) return rarest(filter.all.map(requiredKeys));
  if ('any' in filter) {
    const sets = filter.any.map(requiredKeys);
    return sets.every((keys) => keys !== undefined) ? sets.flat() : undefined;
  }
  if ('tokens' in filter) return filter.tokens.map((id) => `token=${parseTokenId(id)}`);
  if ('parties' in filter) return filter.parties.map((address) => `party=${address.toLowerCase()}`);
  return undefined;
}

/** Many events have the same of these, so any other key finds fewer selections. */
const COMMON: Readonly<Record<string, number>> = {
  type: 1e3,
  source: 1e6,
  specversion: 1e9,
  datacontenttype: 1e9,
};

/** All of the conditions must be true, so the keys of one suffice: those that the fewest events have. */
function rarest(sets: readonly Keys[]): Keys {
  const weightOf = (key: string): number => COMMON[key.slice(0, key.indexOf('='))] ?? 1;
  const known = sets.flatMap((keys) => {
    return keys ? { keys, weight: keys.reduce((sum, key) => sum + weightOf(key), 0) } : [];
  });
  return known.sort((one, other) => one.weight - other.weight)[0]?.keys;
}

function* keysOfEvent(event: CloudEvent): Iterable<string> {
  yield OF_EVERY_EVENT;
  for (const name of ATTRIBUTES) yield `${name}=${event[name]}`;
  if (event.data.tokenIdHex !== undefined) yield `token=${event.data.tokenId}`;
  for (const party of partiesOf(event.data.payload)) yield `party=${party}`;
}
