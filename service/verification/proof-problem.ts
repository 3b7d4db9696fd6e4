import { messageOf } from '../base/errors';

/**
 * Says what the libraries found wrong with a proof. jsonld-signatures collects errors; jsonld's own carry an
 * event.
 */
export function proofProblemOf(thrown: unknown): string {
  const [first] = (thrown as { errors?: unknown[] } | undefined)?.errors ?? [thrown];
  const { details } = (first ?? {}) as { details?: { event?: SafeModeEvent; cause?: unknown } };
  if (details?.event) return safeModeProblemOf(details.event);
  if (details?.cause !== undefined) return messageOf(details.cause);
  const text = messageOf(first).replace(/\.$/, '');
  return COUNTS_DIFFER.test(text) ? 'something was added to it or left out of it after signing' : text;
}

/**
 * https://www.w3.org/TR/json-ld11-api/ has no safe mode: it is jsonld's, which refuses what would silently
 * not be signed.
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
