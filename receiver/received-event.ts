import { createHash } from 'node:crypto';

/**
 * Words used in this folder:
 *
 * - delivery: one POST of the service. The same event may be delivered several times.
 * - event: what a delivery carries, a CloudEvent about one log of the token registry's contracts.
 * - dedupe key: `data.transactionHash` and `data.logIndex`, which name an event on the chain, and what it
 *   says: after the chain was reorganised another event of the same transaction may stand where one stood
 *   that was delivered.
 */

/** The fields of an event that the receiver relies on. All others are kept as they came. */
export interface ReceivedEvent {
  specversion: '1.0';
  id: string;
  source: string;
  type: string;
  /** Token id; "0" for events of the registry as a whole. */
  subject?: string;
  data: { transactionHash: string; logIndex: number; payload?: unknown };
}

const TRANSACTION_HASH = /^0x[0-9a-f]{64}$/i;

/**
 * Reads the bytes of a verified delivery. Undefined if they are not JSON, or not an event that can be told
 * from others.
 */
export function parseEvent(body: Buffer): ReceivedEvent | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isReceivedEvent(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The key by which deliveries of the same event are recognised, whatever the case of the hash. */
export function dedupeKeyOf({ type, data }: ReceivedEvent): string {
  const { transactionHash, logIndex, payload } = data;
  const said = createHash('sha256')
    .update(JSON.stringify([type, payload]))
    .digest('base64url');
  return `${transactionHash.toLowerCase()}:${logIndex}:${said}`;
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
