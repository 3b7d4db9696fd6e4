import type { CloudEvent } from '../outbox/cloud-event';
import { parseTokenId } from '../registry/token-id-forms';
import type { AttributeValues, Filter, Selection } from './subscription';

/** Whether a registry event is for a subscription. */
export type EventPredicate = (event: CloudEvent) => boolean;

/** The attributes that every event has. */
const ATTRIBUTES = {
  id: ({ id }) => id,
  source: ({ source }) => source,
  type: ({ type }) => type,
  subject: ({ subject }) => subject,
  time: ({ time }) => time,
  specversion: ({ specversion }) => specversion,
  datacontenttype: ({ datacontenttype }) => datacontenttype,
} satisfies Record<Exclude<keyof CloudEvent, 'data'>, (event: CloudEvent) => string>;

const READERS = new Map<string, (event: CloudEvent) => string>(Object.entries(ATTRIBUTES));

/**
 * Compiles `source`, `types` and `filters` of a checked subscription. All of them must be true for an event.
 *
 * A filter on an attribute that the event lacks is false, and `not` of it is true, as the CloudEvents
 * Subscriptions API says.
 */
export function compileSelection({ source, types, filters = [] }: Selection): EventPredicate {
  const conditions = filters.map(compile);
  if (source !== undefined) conditions.unshift((event) => event.source === source);
  if (types !== undefined) {
    const wanted = new Set(types);
    conditions.unshift((event) => wanted.has(event.type));
  }
  return every(conditions);
}

function compile(filter: Filter): EventPredicate {
  if ('exact' in filter) return attributes(filter.exact, (has, wanted) => has === wanted);
  if ('prefix' in filter) return attributes(filter.prefix, (has, wanted) => has.startsWith(wanted));
  if ('suffix' in filter) return attributes(filter.suffix, (has, wanted) => has.endsWith(wanted));
  if ('all' in filter) return every(filter.all.map(compile));
  if ('any' in filter) return some(filter.any.map(compile));
  if ('not' in filter) return not(compile(filter.not));
  return 'tokens' in filter ? tokens(filter.tokens) : parties(filter.parties);
}

function every(predicates: readonly EventPredicate[]): EventPredicate {
  return (event) => predicates.every((predicate) => predicate(event));
}

function some(predicates: readonly EventPredicate[]): EventPredicate {
  return (event) => predicates.some((predicate) => predicate(event));
}

function not(predicate: EventPredicate): EventPredicate {
  return (event) => !predicate(event);
}

function attributes(values: AttributeValues, test: (has: string, wanted: string) => boolean): EventPredicate {
  return every(
    Object.entries(values).map(([name, wanted]): EventPredicate => {
      const read = READERS.get(name);
      return read === undefined ? () => false : (event) => test(read(event), wanted);
    }),
  );
}

/** Events of the registry itself have no `tokenIdHex`. Their token id 0 stands for no token. */
function tokens(ids: readonly string[]): EventPredicate {
  const wanted = new Set(ids.map((id) => parseTokenId(id)?.toString()));
  return ({ data }) => data.tokenIdHex !== undefined && wanted.has(data.tokenId);
}

function parties(addresses: readonly string[]): EventPredicate {
  const wanted = new Set(addresses.map((address) => address.toLowerCase()));
  return ({ data }) => hasParty(data.payload, wanted);
}

/** A remark is not an address, even if it has 20 bytes. */
function hasParty(value: unknown, wanted: ReadonlySet<string>): boolean {
  if (typeof value === 'string') return wanted.has(value.toLowerCase());
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, inner]) => name !== 'remark' && hasParty(inner, wanted));
}
