import { createHash } from 'node:crypto';

/**
 * Words used in this folder:
 *
 * - delivery: one POST of the service. The same event may be delivered several times.
 * - event: what a delivery carries, a CloudEvent about one log of the token registry's contracts.
 * - dedupe key: the pair `data.transactionHash` and `data.logIndex`, which names an event on the chain, and
 *   what the event says: after a reorganisation of the chain the same transaction may have another event at
 *   the place of one that was delivered.
 * - unknown delivery: it verifies and is JSON, and no event of a type that this receiver knows.
 */

/** The fields of an event that the receiver relies on. All others are kept as they came. */
export interface ReceivedEvent {
  specversion: '1.0';
  id: string;
  source: string;
  type: string;
  /** Token id; "0" for events of the registry as a whole. */
  subject?: string;
  data: { transactionHash: string; logIndex: number; tokenId?: unknown; payload?: unknown };
}

/** A delivery that is not a known event. It is stored as it came, marked, and acknowledged. */
export interface UnknownDelivery {
  /** Why it is not known. */
  unknown: string;
  /** The text of its body. */
  body: string;
}

/** A stored line. */
export type Received = ReceivedEvent | UnknownDelivery;

/** The event types without their common prefix. */
const TYPES = [
  'minted',
  'burned',
  'surrendered',
  'restored',
  'registry_paused',
  'registry_unpaused',
  'escrow_created',
  'token_received',
  'nomination',
  'beneficiary_transfer',
  'holder_transfer',
  'return_to_issuer',
  'shred',
  'reject_transfer_beneficiary',
  'reject_transfer_holder',
  'reject_transfer_owners',
];
const KNOWN_TYPES = new Set(TYPES.map((type) => `com.service.etr.${type}`));

const TRANSACTION_HASH = /^0x[0-9a-f]{64}$/i;

/** Reads the bytes of a verified delivery. Undefined if they are not JSON. */
export function parseDelivery(bytes: Buffer): Received | undefined {
  const parsed = parseJson(bytes);
  if (!parsed) return undefined;
  const { text: body, value } = parsed;
  if (!isReceivedEvent(value)) return { unknown: 'not a registry event', body };
  return KNOWN_TYPES.has(value.type) ? value : { unknown: 'unknown type', body };
}

/** Reads back what was stored. Undefined if it is neither an event nor marked as unknown. */
export function parseStored(bytes: Buffer): Received | undefined {
  const value = parseJson(bytes)?.value;
  if (isReceivedEvent(value)) return value;
  if (!isObject(value) || typeof value.unknown !== 'string' || typeof value.body !== 'string')
    return undefined;
  return { unknown: value.unknown, body: value.body };
}

/** Whether the delivery is not an event that this receiver knows. */
export function isUnknown(received: Received): received is UnknownDelivery {
  return 'unknown' in received && !isReceivedEvent(received);
}

/**
 * The key by which deliveries of the same event are recognised, whatever the case of the hash. An event has
 * it whether its type is known or not: another version of the receiver may have known more types, or fewer.
 * A delivery of no event is recognised by its body, which is the same in every attempt.
 */
export function dedupeKeyOf(received: Received): string {
  if (!isUnknown(received)) return keyOfEvent(received);
  const value = parseJson(Buffer.from(received.body))?.value;
  return isReceivedEvent(value) ? keyOfEvent(value) : `unknown:${sha256(received.body)}`;
}

function keyOfEvent({ type, data: { transactionHash, logIndex, tokenId, payload } }: ReceivedEvent): string {
  const said = sha256(JSON.stringify([type, tokenId, payload]));
  return `${transactionHash.toLowerCase()}:${logIndex}:${said}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function parseJson(bytes: Buffer): { text: string; value: unknown } | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return { text, value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function isReceivedEvent(value: unknown): value is ReceivedEvent {
  if (!isObject(value) || !isObject(value.data)) return false;
  const { transactionHash, logIndex } = value.data;
  return (
    value.specversion === '1.0' &&
    [value.id, value.source, value.type].every((text) => typeof text === 'string' && text !== '') &&
    (value.subject === undefined || typeof value.subject === 'string') &&
    typeof transactionHash === 'string' &&
    TRANSACTION_HASH.test(transactionHash) &&
    Number.isSafeInteger(logIndex) &&
    Number(logIndex) >= 0
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
