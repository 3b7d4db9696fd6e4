import { v5 as uuidV5 } from 'uuid';
import {
  CHAIN_EVENT_TYPES,
  OPERATIONAL_TYPES,
  type ChainEvent,
  type OperationalEvent,
  type Retraction,
  type TokenEvent,
} from '../../client/events';
import { registryName, type RegistryName } from '../base/registry-name';
import type { RegistryEvent } from '../registry/registry-event';

/** Prefix of every event type (docs/webhook-reference.md, "Event types"). */
export const TYPE_PREFIX = 'com.service.etr.';

/** The event of a mint. */
export const MINTED_TYPE = `${TYPE_PREFIX}minted` as const;

/** The event that takes another event back after a reorganisation. */
export const RETRACTED_TYPE = `${TYPE_PREFIX}retracted` as const;

/** The event that tries a subscription out. */
export const TEST_TYPE = `${TYPE_PREFIX}test` as const;

/** The types that `types` of a subscription may name. */
export const SUBSCRIBABLE_TYPES: readonly string[] = [
  ...CHAIN_EVENT_TYPES,
  RETRACTED_TYPE,
  ...OPERATIONAL_TYPES,
];

/** An event's type without its prefix. */
export function shortType(type: string): string {
  return type.startsWith(TYPE_PREFIX) ? type.slice(TYPE_PREFIX.length) : type;
}

/** Namespace of the event ids. If it changes, every event is sent again with a new id. */
export const EVENT_ID_NAMESPACE = 'ef6a20b8-0d2d-46c0-ab17-9ff867596923';

/** A registry of one chain, with the fields that events carry. */
export interface RegistryIdentity {
  chainKey: string;
  chainId: number;
  /** Lower case. */
  registryAddress: string;
}

type ChainData = ChainEvent['data'];

/**
 * The body of a delivery: CloudEvents 1.0 (docs/webhook-reference.md, "The body"). Its members are those of
 * the published schemas, for an event of any type.
 */
export interface CloudEvent extends Omit<ChainEvent, 'data'> {
  data: Omit<ChainData, 'payload'> &
    Partial<Pick<TokenEvent['data'], 'tokenIdHex'>> & { payload: Record<string, string | boolean> };
}

/**
 * The event's id: a UUID v5 of chain, transaction and log position (docs/specification.md 7.5). It is the
 * same for every attempt, restart and replica.
 *
 * @param blockHash only given if an orphaned event already has the id; see record-range.ts.
 */
export function eventIdOf(
  chainId: number,
  { transactionHash, logIndex }: Pick<RegistryEvent, 'transactionHash' | 'logIndex'>,
  blockHash?: string,
): string {
  const name = `${chainId}:${transactionHash}:${logIndex}${blockHash ? `:${blockHash}` : ''}`;
  return uuidV5(name, EVENT_ID_NAMESPACE);
}

/**
 * The token and the transaction that a chain event, or a retraction of one, is about; the subject of an
 * operational event.
 */
export function aboutOf(body: string): { tokenId: string; transactionHash?: string } {
  const { subject, data } = JSON.parse(body) as CloudEvent | Retraction | OperationalEvent;
  if (!('tokenId' in data)) return { tokenId: subject };
  const { transactionHash } = 'retracted' in data ? data.retracted : data;
  return { tokenId: data.tokenId, transactionHash };
}

/** Epoch milliseconds of the event in a body: of its block; of a retraction: when it was told. */
export function eventTimeOf(body: string): number {
  // Each delivery asks: parsing all of the body would take long. No member before `time` has that name.
  return Date.parse(/"time":"([^"]*)"/.exec(body)?.[1] ?? '');
}

/** The `source` of the events of a registry. */
export function sourceOf(registry: RegistryName): string {
  return `urn:service:${registry}`;
}

/**
 * The token that an event belongs to, in decimals. Empty for events of the registry itself: they carry token
 * id 0, but are not of token 0.
 */
export function tokenKeyOf({ tokenId }: RegistryEvent): string {
  return tokenId?.toString() ?? '';
}

/** Builds the CloudEvent of a registry event. */
export function toCloudEvent(
  event: RegistryEvent,
  registry: RegistryIdentity,
  id = eventIdOf(registry.chainId, event),
): CloudEvent {
  const { tokenId, blockNumber, transactionHash, logIndex, payload } = event;
  return {
    specversion: '1.0',
    id,
    source: sourceOf(registryName(registry.chainId, registry.registryAddress)),
    type: `${TYPE_PREFIX}${event.type}`,
    datacontenttype: 'application/json',
    time: new Date(event.blockTimestamp * 1000).toISOString(),
    subject: (tokenId ?? 0n).toString(),
    data: {
      ...registry,
      tokenId: (tokenId ?? 0n).toString(),
      ...(tokenId !== undefined && { tokenIdHex: tokenId.toString(16).padStart(64, '0') }),
      blockNumber,
      transactionHash,
      logIndex,
      payload,
    },
  };
}
