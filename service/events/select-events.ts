import { parseTokenId } from '../registry/token-id-forms';
import type { CloudEvent } from './cloud-event';
import { OPERATIONS_PREFIX, OPERATIONS_SOURCE } from './conditions';

/** Values of attributes, by the attribute's name. */
export type AttributeValues = Readonly<Record<string, string>>;

/** A condition on an event. `tokens` and `parties` are our own dialects, the others are the standard's. */
export type Filter =
  | { readonly exact: AttributeValues }
  | { readonly prefix: AttributeValues }
  | { readonly suffix: AttributeValues }
  | { readonly all: readonly Filter[] }
  | { readonly any: readonly Filter[] }
  | { readonly not: Filter }
  | { readonly tokens: readonly string[] }
  | { readonly parties: readonly string[] };

/** The members that select events. An absent one selects all events. */
export interface Selection {
  /** `urn:service:<chainId>:<registry>`, in lower case. */
  readonly source?: string | undefined;
  readonly types?: readonly string[] | undefined;
  /** All of them must be true. */
  readonly filters?: readonly Filter[] | undefined;
  /** The scope of the key that it belongs to: all of them must be true, too. */
  readonly scope?: readonly Filter[] | undefined;
}

/** Whether a registry event is for a subscription. */
export type EventPredicate = (event: CloudEvent) => boolean;

/** The attributes that every event has. */
export const ATTRIBUTES = [
  'id',
  'source',
  'type',
  'subject',
  'time',
  'specversion',
  'datacontenttype',
] as const;

/** Whether `types` names a type of operational events. */
export function namesOperations({ types = [] }: Pick<Selection, 'types'>): boolean {
  return types.some((type) => type.startsWith(OPERATIONS_PREFIX));
}

/**
 * Whether a subscription wants operational events of a type: only its `types` select them. They tell of the
 * service, and so are in no scope.
 */
export function wantsOperation({ types, scope }: Selection, type: string): boolean {
  return scope === undefined && types?.includes(type) === true;
}

/** The rules by which a subscription gets events. */
export interface EventRules {
  readonly selection: Selection;
  readonly wants: EventPredicate;
  /** Whether the subscriber gets retractions of events that a reorganisation removed. */
  readonly hasRetractions: boolean;
  /** Whether it may see nothing that the rules do not select. */
  readonly isScoped: boolean;
  /** Whether `source` and the scope allow events of a source. A client notices nothing of other sources. */
  mayHave(this: void, source: string): boolean;
}

/** The members of a realised subscription that decide it. */
interface Selecting extends Selection {
  readonly config: { readonly startFrom: 'now' | 'beginning' | number; readonly retractions: boolean };
}

/** Compiles a stored definition: a realised subscription as JSON. */
export function compileRules(definition: string): EventRules {
  const selection = JSON.parse(definition) as Selecting;
  const { source, scope, config } = selection;
  const first = typeof config.startFrom === 'number' ? config.startFrom : 0;
  const selects = compileSelection(selection);
  return {
    selection,
    wants: (event) =>
      event.type.startsWith(OPERATIONS_PREFIX)
        ? wantsOperation(selection, event.type)
        : event.data.blockNumber >= first && selects(event),
    hasRetractions: config.retractions,
    isScoped: scope !== undefined,
    mayHave: (other) =>
      (scope ?? []).every((filter) => maySelect(filter, other)) &&
      (source === undefined ||
        source === other ||
        (other === OPERATIONS_SOURCE && namesOperations(selection))),
  };
}

/** Whether a filter of a scope may be true for an event of a source. */
function maySelect(filter: Filter, source: string): boolean {
  if ('any' in filter) return filter.any.some((one) => maySelect(one, source));
  if ('all' in filter) return filter.all.every((one) => maySelect(one, source));
  if ('exact' in filter) return filter.exact.source === source;
  return !('prefix' in filter) || source.startsWith(filter.prefix.source ?? '');
}

/** The filters of a selection. All of them are true for each registry event that it selects. */
export function filtersIn({ source, types, filters = [], scope = [] }: Selection): Filter[] {
  return [
    ...(types ? [{ any: types.map((type) => ({ exact: { type } })) }] : []),
    ...(source === undefined ? [] : [{ exact: { source } }]),
    ...scope,
    ...filters,
  ];
}

/**
 * Compiles the filters of a checked subscription. One on an attribute that the event lacks is false, and
 * `not` of it is true, as the CloudEvents Subscriptions API says.
 */
export function compileSelection(selection: Selection): EventPredicate {
  return every(filtersIn(selection).map(compile));
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
      const attribute = ATTRIBUTES.find((one) => one === name);
      return attribute === undefined ? () => false : (event) => test(event[attribute], wanted);
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
  return ({ data }) => partiesOf(data.payload).some((party) => wanted.has(party));
}

/**
 * The texts in a payload, at any depth, that may be addresses, in lower case. A remark is not an address,
 * even if it has 20 bytes.
 */
export function partiesOf(payload: unknown): string[] {
  if (typeof payload === 'string') return [payload.toLowerCase()];
  if (typeof payload !== 'object' || payload === null) return [];
  return Object.entries(payload).flatMap(([name, inner]) => (name === 'remark' ? [] : partiesOf(inner)));
}
