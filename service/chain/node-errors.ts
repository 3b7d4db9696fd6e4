import { inspect } from 'node:util';
import { isError, isHexString, type CallExceptionError } from 'ethers';
import { ServiceError } from '../base/errors';
import { AnswerTooLargeError } from './transport';

/**
 * Messages of providers for a range of blocks that is too wide or has too many logs. There is no common code
 * for it.
 */
const RANGE_REFUSALS = [
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
  return isTooLarge || isThrottled(error) || RANGE_REFUSALS.some((refusal) => refusal.test(textOf(error)));
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

/**
 * The reason why a node refuses a transaction:
 *
 * - `nonce too low`: a transaction with this nonce was mined.
 * - `nonce too high`: a lower nonce is missing, and the node does not queue transactions.
 * - `nonce held`: another transaction with this nonce is pending, and this one does not offer enough more to
 *   replace it.
 * - `fee too low`: it would not be mined at this price.
 * - `no funds`: the wallet cannot pay for it.
 * - `gas`: its gas limit is below the minimum for such a transaction, or above the block's limit.
 * - `busy`: the node has no room or no time for it now.
 * - `other`: the node's message is unknown.
 */
export type Refusal =
  'nonce too low' | 'nonce too high' | 'nonce held' | 'fee too low' | 'no funds' | 'gas' | 'busy' | 'other';

/**
 * Messages of nodes, the more specific first. Nodes have no common error codes; the patterns cover geth,
 * Erigon, Nethermind, Besu and Hardhat.
 */
const WORDS: readonly [RegExp, Refusal][] = [
  [/nonce (is )?too low|old ?nonce|nonce expired/i, 'nonce too low'],
  [/nonce (is )?too high|nonce ?gap|gapped[- ]nonce/i, 'nonce too high'],
  [/replacement|could not replace|another transaction with same nonce|priority is too low/i, 'nonce held'],
  [/insufficient ?funds|enough funds|exceeds allowance|cost exceeds|insufficient balance/i, 'no funds'],
  [
    /underpriced|fee ?too ?low|too low for the next block|less than block base fee|under min gas price/i,
    'fee too low',
  ],
  [/(gas ?price|max ?fee|tip|priority fee).{0,40}(too low|below|at least|minimum)/i, 'fee too low'],
  [/intrinsic gas|requires at least \d+ gas|block gas limit|gas cap|gas ?limit.*(exceed|too)/i, 'gas'],
  [/pool is full|tries to replace pending|too distant|too ?far ?in ?future|spammer/i, 'busy'],
  [/rate limit|too many|limit reached|limit exceeded|try again|timed? ?out|busy/i, 'busy'],
];

/** Classifies the error that a node answered to a transaction. */
export function classifyRefusal(thrown: unknown): Refusal {
  if (isError(thrown, 'NONCE_EXPIRED')) return 'nonce too low';
  if (isError(thrown, 'REPLACEMENT_UNDERPRICED')) return 'nonce held';
  if (isError(thrown, 'INSUFFICIENT_FUNDS')) return 'no funds';
  const words = nodeErrorOf(thrown) ?? '';
  return WORDS.find(([pattern]) => pattern.test(words))?.[1] ?? 'other';
}

/** JSON-RPC 2.0, section 5.1: wrong parameters. */
const INVALID_PARAMETERS = -32602;
/** Messages for a block tag that a node does not know, also of nodes that use another code. */
const PARAMETER_REFUSALS = /hex string without 0x|invalid (argument|block|param|tag)|(not|un)[- ]?supported/i;

/** Whether a node refuses a parameter, such as a block tag that it does not know. */
export function isParameterRefused(thrown: unknown): boolean {
  const answer = nodeAnswerOf(thrown);
  if (answer === undefined) return false;
  const isInvalid = 'code' in answer && Number(answer.code) === INVALID_PARAMETERS;
  return isInvalid || PARAMETER_REFUSALS.test(nodeErrorOf(thrown) ?? '');
}

/** Whether a node says that it has no such block, as geth does: "finalized block not found". */
export function isBlockAbsent(thrown: unknown): boolean {
  return /not found|unknown block/i.test(nodeErrorOf(thrown) ?? '');
}

/** JSON-RPC 2.0, section 5.1: an internal error, which does not say what failed. */
const INTERNAL_ERROR = -32603;

/**
 * Whether a refusal means that the node does not have the transaction. An internal error, an unknown message,
 * and a load balancer's answer ("busy", "try again") leave that open.
 */
export function isDefinite(thrown: unknown): boolean {
  const refusal = classifyRefusal(thrown);
  const answer = nodeAnswerOf(thrown);
  const isInternal = answer !== undefined && 'code' in answer && Number(answer.code) === INTERNAL_ERROR;
  return refusal !== 'other' && refusal !== 'busy' && !isInternal;
}

/** The message of the node's own error, if the node answered with one. */
export function nodeErrorOf(thrown: unknown): string | undefined {
  const nodeError = nodeAnswerOf(thrown);
  return nodeError && 'message' in nodeError ? String(nodeError.message) : undefined;
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
