import { messageOf } from '../base/errors';

/**
 * Describes the problem that the libraries found with a proof. jsonld-signatures collects errors; jsonld's
 * own carry an event.
 */
export function proofProblemOf(thrown: unknown): string {
  const [first] = (thrown as { errors?: unknown[] } | undefined)?.errors ?? [thrown];
  const { details } = (first ?? {}) as { details?: { event?: SafeModeEvent; cause?: unknown } };
  if (details?.event) return safeModeProblemOf(details.event);
  if (details?.cause !== undefined) return messageOf(details.cause);
  const text = messageOf(first).replace(/\.$/, '');
  if (COUNTS_DIFFER.test(text)) return 'something was added to it or left out of it after signing';
  return text === 'Invalid signature' ? 'it was changed after signing, or another key signed it' : text;
}

/**
 * An event of jsonld's safe mode, which refuses content that would silently not be signed. The standard
 * (https://www.w3.org/TR/json-ld11-api/) has no such mode.
 */
interface SafeModeEvent {
  code?: string;
  message?: string;
  details?: Record<string, unknown>;
}

const COUNTS_DIFFER = /^Signature count/;

function safeModeProblemOf({ code, message, details = {} }: SafeModeEvent): string {
  const { property } = details;
  if (typeof property === 'string') return `"${property}" is not defined by any of its contexts`;
  return `${message ?? code ?? 'something in it'} is not covered by the signature`;
}
