import { v5 as uuidV5 } from 'uuid';
import {
  operationalMembersOf,
  type OperationalEvent,
  type OperationSuffix,
} from '../../client/event-schemas';
import type { RegistryName } from '../base/registry-name';
import { EVENT_ID_NAMESPACE, TYPE_PREFIX } from './cloud-event';

/**
 * Terms of conditions:
 *
 * - condition: something that is wrong with a subject, such as a subscription, a feed or the wallet.
 * - observer: the part of the service that sees a condition, such as the reader of a feed. Several may see
 *   the same one: it lasts until the last of them does not see it any more.
 * - operational event: the CloudEvent that tells of the begin or the end of a condition.
 */

/** The feed of operational events. No registry has this name. */
export const OPERATIONS = 'operations';

/** The `source` of operational events. */
export const OPERATIONS_SOURCE = `urn:service:${OPERATIONS}`;

/** The prefix of the types of operational events. */
export const OPERATIONS_PREFIX = `${TYPE_PREFIX}${OPERATIONS}.`;

/**
 * Every kind of condition, with the event of its end. An operational event of the kind's own name tells of
 * its begin. Without an event of its end, a condition is shown and not told.
 *
 * Conditions of one subject that have the same end are states of one thing: one follows on another without an
 * end between them.
 */
const ENDS = {
  subscription_failing: 'subscription_recovered',
  subscription_gone: 'subscription_recovered',
  subscription_slow: undefined,
  subscription_paused: 'subscription_recovered',
  dead_letters: undefined,
  feed_stopped: 'feed_recovered',
  feed_behind: 'feed_recovered',
  feed_ahead: undefined,
  feed_unreceived: undefined,
  feed_unfollowed: undefined,
  reorganisation_too_deep: 'feed_recovered',
  node_away: 'node_back',
  node_differing: 'node_back',
  wallet_low: 'wallet_filled',
  signer_away: 'signer_back',
  mint_deferred: 'mint_resumed',
  mint_failed: undefined,
  documents_unfollowed: undefined,
  database_missing: 'database_restored',
  database_unwritable: undefined,
} as const satisfies Record<string, OperationSuffix | undefined>;

/** A kind of condition. */
export type ConditionKind = keyof typeof ENDS;

export const CONDITION_KINDS = Object.keys(ENDS) as ConditionKind[];

/** A condition. The members of `detail` are those of its event, and those that are shown besides. */
export interface Condition {
  readonly what: ConditionKind;
  /** `subscription/<id>`, `feed/<chain id>:<registry>`, `node/<URL>`, `wallet`, … */
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly detail: Readonly<Record<string, string | number | undefined>>;
}

/** The event of the begin of a condition. Undefined: it is not told. */
export function beginOf(what: ConditionKind): OperationSuffix | undefined {
  return ENDS[what] && (what as OperationSuffix);
}

/** The event of the end of a condition. Undefined: it is not told. */
export function endOf(what: ConditionKind): OperationSuffix | undefined {
  return ENDS[what];
}

/** The subject of a subscription's conditions. */
export function subjectOfSubscription(name: string): string {
  return `subscription/${name}`;
}

/** Subject and detail of the conditions of a registry's feed. */
export function aboutFeed(registry: RegistryName) {
  const [chainId, registryAddress = ''] = registry.split(':');
  return { subject: `feed/${registry}`, detail: { chainId: Number(chainId), registryAddress } };
}

/**
 * The operational event of a condition. Its id is the same whichever process tells it.
 *
 * @param now when the condition was noticed, or ended. Epoch milliseconds.
 */
export function operationalEventOf(
  suffix: OperationSuffix,
  { subject, since, detail }: Omit<Condition, 'what'>,
  now: number,
): OperationalEvent {
  const all: Record<string, unknown> = { ...detail, since: new Date(since).toISOString() };
  const members = operationalMembersOf(suffix).filter((name) => all[name] !== undefined);
  const event = {
    specversion: '1.0',
    id: uuidV5(`${OPERATIONS}:${suffix}:${subject}:${since}:${detail.event ?? ''}`, EVENT_ID_NAMESPACE),
    source: OPERATIONS_SOURCE,
    type: `${OPERATIONS_PREFIX}${suffix}`,
    datacontenttype: 'application/json',
    time: new Date(now).toISOString(),
    subject,
    data: Object.fromEntries(members.map((name) => [name, all[name]])),
  };
  return event as OperationalEvent;
}
