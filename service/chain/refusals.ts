import { inspect } from 'node:util';
import { isError, isHexString, type CallExceptionError } from 'ethers';
import { ServiceError } from '../base/errors';
import { AnswerTooLargeError } from './transport';

/**
 * Messages of providers for a range of blocks that is too wide or has too many logs. There is no common code
 * for it.
 */
const REFUSALS = [
  /block range|range (is )?too|too (wide|large|many|big)|wide range/i,
  /more than [\d,]+ (results|logs|blocks)|query returned more|max(imum)? (results|blocks|logs|range|allowed)/i,
  /limit(ed)? (exceeded|to)|exceed(s|ed)? .*(limit|range|maximum|max)|response size|payload too large/i,
  /query timeout|timed out|took too long/i,
];

const THROTTLING = /rate limit|too many requests/i;

/** Whether a provider refused a read, or answered too much, but may answer it for fewer blocks. */
export function isRangeRefused(error: unknown): boolean {
  if (error instanceof ServiceError) return error instanceof AnswerTooLargeError;
  const isTooLarge = isError(error, 'SERVER_ERROR') && error.response?.statusCode === 413;
  return isTooLarge || isThrottled(error) || REFUSALS.some((refusal) => refusal.test(textOf(error)));
}

/** Whether a provider throttles requests, by status 429 or by its message. */
export function isThrottled(error: unknown): boolean {
  const status = isError(error, 'SERVER_ERROR') ? error.response?.statusCode : undefined;
  return status === 429 || THROTTLING.test(textOf(error));
}

/**
 * Whether the contract itself reverted. ethers reports any error answer to a call as a CALL_EXCEPTION, even
 * "too many requests".
 */
export function isReverted(error: unknown): error is CallExceptionError & { data: string } {
  return isError(error, 'CALL_EXCEPTION') && error.data !== null;
}

/** Messages of geth, Erigon, Nethermind, Besu, Hardhat and Anvil for a call that ran and failed. */
const EXECUTION_FAILURES =
  /revert|invalid opcode|opcodenotfound|bad ?instruction|jump destination|invalidjump|out of ?gas|stack ?underflow|vm execution error/i;

/**
 * Whether a node ran a call, and the contract did not do what a contract with that function does: it failed,
 * or returned something else. Nodes report a failure without data by their message alone.
 */
export function isNotImplemented(error: unknown): boolean {
  if (isError(error, 'BAD_DATA')) return isHexString(error.value);
  return isReverted(error) || EXECUTION_FAILURES.test(nodeErrorOf(error) ?? '');
}

/** The message of the node's own error, if the node answered with one. */
export function nodeErrorOf(thrown: unknown): string | undefined {
  const nodeError = nodeAnswerOf(thrown);
  return nodeError && 'message' in nodeError ? String(nodeError.message) : undefined;
}

/** The JSON-RPC code of the node's own error. */
export function nodeErrorCodeOf(thrown: unknown): number | undefined {
  const nodeError = nodeAnswerOf(thrown);
  return nodeError && 'code' in nodeError ? Number(nodeError.code) : undefined;
}

/** ethers puts the node's error in `error` or `info.error`. */
function nodeAnswerOf(thrown: unknown): object | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { error, info } = thrown as { error?: unknown; info?: { error?: unknown } };
  const nodeError = error ?? info?.error;
  return typeof nodeError === 'object' && nodeError !== null ? nodeError : undefined;
}

/** The message and the node's own answer, without URL and request, which may contain anything. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const answer: unknown = 'error' in error ? error.error : undefined;
  const info: unknown = 'info' in error ? error.info : undefined;
  const responseBody =
    typeof info === 'object' && info !== null && 'responseBody' in info ? info.responseBody : undefined;
  const shortMessage = 'shortMessage' in error ? error.shortMessage : error.message;
  return [shortMessage, answer && inspect(answer), responseBody].filter(Boolean).join(' ');
}
