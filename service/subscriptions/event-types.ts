import type { CloudEvent } from '../outbox/cloud-event';

/** An object, so that the compiler finds a type that is missing here. */
const REGISTRY_EVENT_TYPES: Readonly<Record<CloudEvent['type'], true>> = {
  'com.service.etr.minted': true,
  'com.service.etr.burned': true,
  'com.service.etr.surrendered': true,
  'com.service.etr.restored': true,
  'com.service.etr.registry_paused': true,
  'com.service.etr.registry_unpaused': true,
  'com.service.etr.escrow_created': true,
  'com.service.etr.token_received': true,
  'com.service.etr.nomination': true,
  'com.service.etr.beneficiary_transfer': true,
  'com.service.etr.holder_transfer': true,
  'com.service.etr.return_to_issuer': true,
  'com.service.etr.shred': true,
  'com.service.etr.reject_transfer_beneficiary': true,
  'com.service.etr.reject_transfer_holder': true,
  'com.service.etr.reject_transfer_owners': true,
};

/** The event that takes another event back after a reorganisation. */
export const RETRACTED_TYPE = 'com.service.etr.retracted';

/** The types that `types` of a subscription may name. */
export const SUBSCRIBABLE_TYPES: readonly string[] = [...Object.keys(REGISTRY_EVENT_TYPES), RETRACTED_TYPE];
