import { createHash } from 'node:crypto';
import {
  EVENT_SCHEMAS,
  type ChainEvent,
  type Retraction,
  type ServiceEvent,
  type TestEvent,
} from './event-schemas';

/**
 * Terms of this folder, besides those of event-schemas.ts:
 *
 * - delivery: one POST of the service. The same event may be delivered several times.
 * - dedupe key: identifies the deliveries of one event. For a chain event it is the pair and the content:
 *   after a reorganisation of the chain, the same transaction may have another event at the same position.
 *   For other events it is the id.
 * - unknown delivery: its signature is valid and it is JSON, but it is not an event of a type that this
 *   receiver knows.
 */

/** The fields of a chain event of any type that the receiver relies on. All others are kept unchanged. */
interface EventOfLog extends Pick<ChainEvent, 'specversion' | 'id' | 'source'> {
  type: string;
  subject?: string;
  data: Pick<ChainEvent['data'], 'transactionHash' | 'logIndex'> & { tokenId?: unknown; payload?: unknown };
}

type ReceivedEvent = EventOfLog | Retraction | TestEvent;

/** A delivery that is not a known event. It is stored unchanged, marked, and acknowledged. */
export interface UnknownDelivery {
  /** The reason why it is unknown. */
  unknown: string;
  /** The text of its body. */
  body: string;
}

type Data = Record<string, unknown>;

/** A stored line. */
export type Received = ReceivedEvent | UnknownDelivery;

const RETRACTED: Retraction['type'] = 'com.service.etr.retracted';
const TEST: TestEvent['type'] = 'com.service.etr.test';
const TRANSACTION_HASH = /^0x[0-9a-f]{64}$/i;

/** Parses the bytes of a verified delivery. Undefined if they are not JSON. */
export function parseDelivery(bytes: Buffer): ServiceEvent | UnknownDelivery | undefined {
  const parsed = parseJson(bytes);
  if (!parsed) return undefined;
  const { text: body, value } = parsed;
  if (!isReceivedEvent(value)) return { unknown: 'not a registry event', body };
  return isOfKnownType(value) ? value : { unknown: 'unknown type', body };
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
 * The dedupe key, whatever the case of the transaction's hash. Events of unknown types have it too: another
 * version of the receiver may know more types, or fewer. A delivery without an event is identified by its
 * body, which is the same in every attempt.
 */
export function dedupeKeyOf(received: Received): string {
  return keyOf(received, keyOfEvent);
}

/**
 * The dedupe key for a subscription with retractions. It is made from the id: an event that was retracted
 * comes again under another id, with the same pair and content.
 */
export function idKeyOf(received: Received): string {
  return keyOf(received, ({ id }) => `id:${id}`);
}

function keyOf(received: Received, ofEvent: (event: ReceivedEvent) => string): string {
  if (!isUnknown(received)) return ofEvent(received);
  const value = parseJson(Buffer.from(received.body))?.value;
  return isReceivedEvent(value) ? ofEvent(value) : `unknown:${sha256(received.body)}`;
}

function keyOfEvent(event: ReceivedEvent): string {
  if (!isOfLog(event)) return `id:${event.id}`;
  const { transactionHash, logIndex, tokenId, payload } = event.data;
  const said = sha256(JSON.stringify([event.type, tokenId, payload]));
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

/** The signature vouches for the members that the receiver does not check. */
function isOfKnownType(event: ReceivedEvent): event is ServiceEvent {
  return Object.hasOwn(EVENT_SCHEMAS, event.type);
}

/** Only retractions and test events have no pair. */
function isOfLog(event: ReceivedEvent): event is EventOfLog {
  return event.type !== RETRACTED && event.type !== TEST;
}

function isReceivedEvent(value: unknown): value is ReceivedEvent {
  if (!isObject(value) || !isObject(value.data)) return false;
  return (
    value.specversion === '1.0' &&
    [value.id, value.source, value.type].every((text) => typeof text === 'string' && text !== '') &&
    (value.subject === undefined || typeof value.subject === 'string') &&
    hasDataOf(String(value.type), value.data)
  );
}

function hasDataOf(type: string, { retracts, test, transactionHash, logIndex }: Data): boolean {
  if (type === RETRACTED) return typeof retracts === 'string' && retracts !== '';
  if (type === TEST) return test === true;
  return (
    typeof transactionHash === 'string' &&
    TRANSACTION_HASH.test(transactionHash) &&
    Number.isSafeInteger(logIndex) &&
    Number(logIndex) >= 0
  );
}

function isObject(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
