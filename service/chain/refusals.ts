import { inspect } from 'node:util';
import { isError, type CallExceptionError } from 'ethers';

/**
 * What providers say when a range of blocks is too wide for them, or holds too much. There is no common code
 * for it.
 */
const REFUSALS = [
  /block range|range (is )?too|too (wide|large|many|big)|wide range/i,
  /more than [\d,]+ (results|logs|blocks)|query returned more|max(imum)? (results|blocks|logs|range|allowed)/i,
  /limit(ed)? (exceeded|to)|exceed(s|ed)? .*(limit|range|maximum|max)|response size|payload too large/i,
  /query timeout|timed out|took too long/i,
];

const THROTTLING = /rate limit|too many requests/i;

/** Whether a provider refused a read that it may answer for fewer blocks. */
export function isRangeRefused(error: unknown): boolean {
  const isTooLarge = isError(error, 'SERVER_ERROR') && error.response?.statusCode === 413;
  return isTooLarge || isThrottled(error) || REFUSALS.some((refusal) => refusal.test(textOf(error)));
}

/** Whether a provider says that it is asked too often: by status 429, or in words. */
export function isThrottled(error: unknown): boolean {
  const status = isError(error, 'SERVER_ERROR') ? error.response?.statusCode : undefined;
  return status === 429 || THROTTLING.test(textOf(error));
}

/**
 * Whether the contract itself refused. ethers calls whatever a node answers to a call an exception of the
 * call, "too many requests" too.
 */
export function isReverted(error: unknown): error is CallExceptionError & { data: string } {
  return isError(error, 'CALL_EXCEPTION') && error.data !== null;
}

/** What the node itself says of an error, if it is one that it answered with. */
export function nodeErrorOf(thrown: unknown): string | undefined {
  const nodeError = nodeAnswerOf(thrown);
  return nodeError && 'message' in nodeError ? String(nodeError.message) : undefined;
}

/** The JSON-RPC code of the node's own error. */
export function nodeErrorCodeOf(thrown: unknown): number | undefined {
  const nodeError = nodeAnswerOf(thrown);
  return nodeError && 'code' in nodeError ? Number(nodeError.code) : undefined;
}

/** ethers puts it in `error` or `info.error`. */
function nodeAnswerOf(thrown: unknown): object | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { error, info } = thrown as { error?: unknown; info?: { error?: unknown } };
  const nodeError = error ?? info?.error;
  return typeof nodeError === 'object' && nodeError !== null ? nodeError : undefined;
}

/** The message with the node's own answer in it; not the URL or the request, which may hold anything. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const answer: unknown = 'error' in error ? error.error : undefined;
  const info: unknown = 'info' in error ? error.info : undefined;
  const responseBody =
    typeof info === 'object' && info !== null && 'responseBody' in info ? info.responseBody : undefined;
  const shortMessage = 'shortMessage' in error ? error.shortMessage : error.message;
  return [shortMessage, answer && inspect(answer), responseBody].filter(Boolean).join(' ');
}
