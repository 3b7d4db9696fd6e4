import { CHAIN_EVENT_TYPES } from '../../client/events';

/** Prefix of every event type (docs/webhooks.md, "Event types"). */
export const TYPE_PREFIX = 'com.service.etr.';

/** The event of a mint. */
export const MINTED_TYPE = `${TYPE_PREFIX}minted` as const;

/** The event that takes another event back after a reorganisation. */
export const RETRACTED_TYPE = `${TYPE_PREFIX}retracted` as const;

/** The event that tries a subscription out. */
export const TEST_TYPE = `${TYPE_PREFIX}test` as const;

/** The types that `types` of a subscription may name. */
export const SUBSCRIBABLE_TYPES: readonly string[] = [...CHAIN_EVENT_TYPES, RETRACTED_TYPE];

/** An event's type without its prefix. */
export function shortType(type: string): string {
  return type.startsWith(TYPE_PREFIX) ? type.slice(TYPE_PREFIX.length) : type;
}
