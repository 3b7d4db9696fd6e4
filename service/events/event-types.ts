import type { RegistryEvent } from '../registry/registry-event';

/** Prefix of every event type (docs/webhooks.md, "Event types"). */
export const TYPE_PREFIX = 'com.service.etr.';

/** An object, so that the compiler finds a type that is missing here. */
const OF_REGISTRIES: Readonly<Record<RegistryEvent['type'], true>> = {
  minted: true,
  burned: true,
  surrendered: true,
  restored: true,
  registry_paused: true,
  registry_unpaused: true,
  escrow_created: true,
  token_received: true,
  nomination: true,
  beneficiary_transfer: true,
  holder_transfer: true,
  return_to_issuer: true,
  shred: true,
  reject_transfer_beneficiary: true,
  reject_transfer_holder: true,
  reject_transfer_owners: true,
};

/** The event of a mint. */
export const MINTED_TYPE = `${TYPE_PREFIX}minted` as const;

/** The event that takes another event back after a reorganisation. */
export const RETRACTED_TYPE = `${TYPE_PREFIX}retracted` as const;

/** The event that tries a subscription out. */
export const TEST_TYPE = `${TYPE_PREFIX}test` as const;

/** The types that `types` of a subscription may name. */
export const SUBSCRIBABLE_TYPES: readonly string[] = [
  ...Object.keys(OF_REGISTRIES).map((type) => TYPE_PREFIX + type),
  RETRACTED_TYPE,
];

/** An event's type without its prefix. */
export function shortType(type: string): string {
  return type.startsWith(TYPE_PREFIX) ? type.slice(TYPE_PREFIX.length) : type;
}
