import * as deliveries from './deliveries';
import * as discovery from './discovery';
import * as documents from './documents';
import type { Operation } from './operation';
import * as registries from './registries';
import * as subscriptions from './subscriptions';
import * as tokens from './tokens';

/** Every operation of the HTTP API, in the order of the description. */
export const OPERATIONS: readonly Operation[] = [
  documents.CREATE_DOCUMENT,
  documents.GET_DOCUMENT,
  documents.LIST_DOCUMENTS,
  tokens.GET_TOKEN,
  tokens.VERIFY_CREDENTIAL,
  tokens.DERIVE_CREDENTIAL,
  subscriptions.CREATE_SUBSCRIPTION,
  subscriptions.LIST_SUBSCRIPTIONS,
  subscriptions.GET_SUBSCRIPTION,
  subscriptions.REPLACE_SUBSCRIPTION,
  subscriptions.DELETE_SUBSCRIPTION,
  deliveries.TEST_SUBSCRIPTION,
  deliveries.REDELIVER,
  deliveries.LIST_DELIVERIES,
  deliveries.FIND_DELIVERIES,
  deliveries.LIST_EVENTS,
  deliveries.GET_EVENT,
  registries.LIST_REGISTRIES,
  registries.ADD_REGISTRY,
  registries.REMOVE_REGISTRY,
  discovery.DID_DOCUMENT,
  discovery.JWKS,
  discovery.PUBLISHED_FILE,
  discovery.LIST_SCHEMAS,
  discovery.EVENT_SCHEMA,
  discovery.OPENAPI,
  discovery.REFERENCE,
  discovery.HEALTH_CHECK,
  discovery.METRICS,
  discovery.GREETING,
];
