import { createHash } from 'node:crypto';

/**
 * Terms of this folder:
 *
 * - delivery: one POST of the service. The same event may be delivered several times.
 * - event: the CloudEvent in a delivery, about one log of the token registry's contracts.
 * - dedupe key: `data.transactionHash`, `data.logIndex` and the content of the event. After a reorganisation
 *   of the chain, the same transaction may have another event at the same position.
 * - unknown delivery: its signature is valid and it is JSON, but it is not an event of a type that this
 *   receiver knows.
 */

/** The fields of an event that the receiver relies on. All others are kept unchanged. */
export interface ReceivedEvent {
  specversion: '1.0';
  id: string;
  source: string;
  type: string;
  /** Token id; "0" for events of the registry as a whole. */
  subject?: string;
  data: { transactionHash: string; logIndex: number; tokenId?: unknown; payload?: unknown };
}

/** A delivery that is not a known event. It is stored unchanged, marked, and acknowledged. */
export interface UnknownDelivery {
  /** The reason why it is unknown. */
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

/** Parses the bytes of a verified delivery. Undefined if they are not JSON. */
export function parseDelivery(bytes: Buffer): Received | undefined {
  const parsed = parseJson(bytes);
  if (!parsed) return undefined;
  const { text: body, value } = parsed;
  if (!isReceivedEvent(value)) return { unknown: 'not a registry event', body };
  return KNOWN_TYPES.has(value.type) ? value : { unknown: 'unknown type', body };
}

/** Parses a stored line. Undefined if it is neither an event nor marked as unknown. */
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
 * The key that identifies deliveries of the same event, whatever the case of the hash. Events of unknown
 * types have it too: another version of the receiver may know more types, or fewer. A delivery without an
 * event is identified by its body, which is the same in every attempt.
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
