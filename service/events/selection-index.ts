import { parseTokenId } from '../registry/token-id-forms';
import type { CloudEvent } from './cloud-event';
import { ATTRIBUTES, partiesOf, type Filter, type Selection } from './select-events';

/**
 * Finds the selections that may be true for an event, without comparing the others.
 *
 * A key is a value that a selection needs, such as `party=0x…`. A selection is kept under keys of which each
 * of its events has at least one. A selection that has only `not`, `prefix` or `suffix` has no such keys, and
 * is found for every event.
 */
export class SelectionIndex {
  readonly #byKey = new Map<string, Set<number>>();
  readonly #keys = new Map<number, readonly string[]>();
  readonly #withoutKeys = new Set<number>();

  /** Adds a selection under an id, in the place of the one that has this id. */
  set(id: number, selection: Selection): void {
    this.delete(id);
    const keys = requiredKeys(selection);
    if (keys === undefined) {
      this.#withoutKeys.add(id);
      return;
    }
    this.#keys.set(id, keys);
    for (const key of keys) {
      const ids = this.#byKey.get(key) ?? new Set();
      this.#byKey.set(key, ids.add(id));
    }
  }

  delete(id: number): void {
    this.#withoutKeys.delete(id);
    for (const key of this.#keys.get(id) ?? []) {
      const ids = this.#byKey.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#byKey.delete(key);
    }
    this.#keys.delete(id);
  }

  /** The ids of all selections that are true for the event, and of some that are not. */
  candidates(event: CloudEvent): ReadonlySet<number> {
    const found = new Set(this.#withoutKeys);
    for (const key of keysOfEvent(event)) for (const id of this.#byKey.get(key) ?? []) found.add(id);
    return found;
  }
}

/** Many events have the same of these, so any other key finds fewer selections. */
const COMMON: Readonly<Record<string, number>> = {
  type: 1e3,
  source: 1e6,
  specversion: 1e9,
  datacontenttype: 1e9,
};

/** Keys of which an event has at least one if a condition is true for it. */
interface KeySet {
  keys: readonly string[];
  /** How many events have one of them, roughly: a sum of weights. */
  weight: number;
}

function requiredKeys({ source, types, filters = [] }: Selection): readonly string[] | undefined {
  const sets = filters.map(keysOfFilter);
  if (types !== undefined) sets.push(keySet('type', types));
  if (source !== undefined) sets.push(keySet('source', [source]));
  return rarest(sets)?.keys;
}

function keysOfFilter(filter: Filter): KeySet | undefined {
  if ('exact' in filter)
    return rarest(
      Object.entries(filter.exact).map(([name, value]) => keySet(name, isAttribute(name) ? [value] : [])),
    );
  if ('all' in filter) return rarest(filter.all.map(keysOfFilter));
  if ('any' in filter) return union(filter.any.map(keysOfFilter));
  if ('tokens' in filter)
    return keySet(
      'token',
      filter.tokens.map((id) => String(parseTokenId(id))),
    );
  if ('parties' in filter)
    return keySet(
      'party',
      filter.parties.map((address) => address.toLowerCase()),
    );
  return undefined;
}

function isAttribute(name: string): boolean {
  return ATTRIBUTES.some((attribute) => attribute === name);
}

function keySet(name: string, values: readonly string[]): KeySet {
  return { keys: values.map((value) => `${name}=${value}`), weight: values.length * (COMMON[name] ?? 1) };
}

/** All of the conditions must be true, so the keys of one of them suffice. */
function rarest(sets: readonly (KeySet | undefined)[]): KeySet | undefined {
  const known = sets.filter((set) => set !== undefined);
  return known.sort((one, other) => one.weight - other.weight)[0];
}

function union(sets: readonly (KeySet | undefined)[]): KeySet | undefined {
  const known = sets.filter((set) => set !== undefined);
  if (known.length < sets.length) return undefined;
  return {
    keys: [...new Set(known.flatMap(({ keys }) => keys))],
    weight: known.reduce((sum, { weight }) => sum + weight, 0),
  };
}

function* keysOfEvent(event: CloudEvent): Iterable<string> {
  for (const name of ATTRIBUTES) yield `${name}=${event[name]}`;
  if (event.data.tokenIdHex !== undefined) yield `token=${event.data.tokenId}`;
  for (const party of partiesOf(event.data.payload)) yield `party=${party}`;
}
