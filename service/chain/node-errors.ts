import { inspect } from 'node:util';
import { FetchResponse, isError, isHexString, makeError, type CallExceptionError } from 'ethers';
import {
  ChainError,
  codeOf,
  cut,
  LONGEST_MESSAGE,
  messageOf,
  orUndefined,
  ServiceError,
} from '../base/errors';
import type { Answered } from '../base/exchange';
import { MASK, printableUrl } from '../base/mask-secrets';
import { printable } from '../base/printable';
import { retryAfterMsOf } from '../base/time';

/**
 * Maximum bytes of an answer, after decoding. The largest answer that cannot be requested in parts is the
 * receipt of a transaction that fills its block with logs. A log costs 765 gas at least, and is then about
 * 400 bytes of JSON: a block of 60 million gas gives 32 MB. Parsing logs of 64 MB takes 230 MB of memory.
 */
export const LARGEST_ANSWER_BYTES = 64_000_000;

/** The answer is too large to be read. A range of blocks is read in parts then. */
export class AnswerTooLargeError extends ChainError {
  constructor() {
    const remedy = 'If this goes on, point RPC_URL at another node.';
    const problem = `The node's answer is larger than ${LARGEST_ANSWER_BYTES / 1e6} MB`;
    super('RPC_UNREACHABLE', `${problem}, or has more than a million arrays and objects. ${remedy}`, {
      remedy,
    });
  }
}

/** The connection to a node failed, or could not be made. It has the code of its cause. */
export class ConnectionError extends Error {
  readonly code: string | undefined;

  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
    this.name = 'ConnectionError';
    this.code = codeOf(cause);
  }
}

/** Whether an error was made by ethers, or by this file in its form. */
export function isOfEthers(cause: unknown): boolean {
  return cause instanceof Error && 'shortMessage' in cause;
}

/** An answer that a node should not give. `said`: the text of its error. `cause` has it as a clause. */
export function malformed(method: string, said = ''): ChainError {
  const cause = quoted(said);
  const message = `The node's answer to ${method} is not valid JSON-RPC${cause}.`;
  return new ChainError('ANSWER_MALFORMED', message, { cause });
}

/**
 * Builds an error like ethers' own, without the URL, which may contain a key. `responseBody` is masked before
 * it is cut, so that no part of a secret remains.
 */
export function serverError({ status, headers }: Answered, url: string, responseBody = ''): Error {
  const retryAfter = { 'retry-after': [headers['retry-after']].flat()[0] ?? '' };
  const response = new FetchResponse(status, '', retryAfter, Buffer.from(responseBody));
  const { location: to = '' } = headers;
  const location = to && URL.canParse(to, url) && printableUrl(new URL(to, url).href);
  const info = { responseBody: cut(responseBody, LONGEST_MESSAGE), location };
  return makeError(`server response ${status}`, 'SERVER_ERROR', { request: '', response, info });
}

/** A node's error that does not decide a request: it can be repeated. */
export function noAnswer(what: string, error: { message?: unknown }, status?: number): Error {
  const response = status && { response: new FetchResponse(status, '', {}, null) };
  const about = { request: '', ...response, info: { error } };
  return makeError(`${what}: ${cut(String(error.message))}`, 'SERVER_ERROR', about);
}

/** Words that are more likely a key, or a customer's id, than words: the setting may have another part. */
const KEY_LIKE = /\b(?!0x)(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{16,}/gi;

/** A node's own words, for a line that anybody may read. */
export function quoted(words: string): string {
  return words && `: ${cut(printable(words.replace(KEY_LIKE, MASK)))}`;
}

/** Codes of providers that are asked too often: Alchemy, QuickNode, Infura, proxyd and others. */
const RATE_CODES = [429, -32005, -32007, -32011, -32016, -32029, -32090, -32097];
const RATE_WORDS =
  /rate[- ]?limit|throttl|too many requests|slow down|per (second|minute|hour|day)|\d ?\/ ?s(ec|econd)?\b/i;
/** A pause that the provider asks for. Without a unit, a number may be anything. */
const PAUSE_ASKED =
  /(?:\bagain|\bretry|\bwait|backoff)[^\d.]{0,20}(\d+(?:\.\d+)?) ?(ms|milliseconds?|s|secs?|seconds?)\b/i;
/** Infura's pause, in the data of its error. */
const BACKOFF_SECONDS = /backoff_seconds\W{1,3}(\d+(?:\.\d+)?)/;
/** Both together are a limit of requests, unless the next words say that it is another limit. */
const RATED =
  /\b(requests?|calls?|rate|rps|capacity|throughput|quota|usage|plan|credits?|units|concurrent)\b/i;
const LIMITED = /limit|exceed|reached|exhaust|too many|used up/i;
/** Fewer blocks, or another transaction, may help there. Besu uses codes of rates for such refusals. */
const OTHER_LIMITS =
  /\b(blocks?|ranges?|logs|results|quer(y|ies)|address(es)?|topics?|size|batch|bytes|gas|fees?|nonce|transactions?|tx|sender|signatures?|pool|depth|memory|exception|time ?out)\b|timed out|revert/i;

/** Statuses with which a provider refuses what it is asked for, in the place of a JSON-RPC error. */
const REFUSING_STATUSES = [400, 413, 422];
/** Statuses about who asks. */
const STATUSES_OF_KEYS = [401, 402, 403];
/** Codes of a connection that was open and ended without an answer. */
const CUT = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/**
 * Whether a node may answer if it is asked for less, or in another way. Nodes refuse in their own words, with
 * any code, or fail at what is too much: only answers about the rate, the quota or the key are no refusals,
 * and a node that cannot be reached.
 */
export function isRefusal(error: unknown): boolean {
  if (isAnswer(error)) return true;
  if (isDenied(error)) return false;
  return isError(error, 'SERVER_ERROR') || isError(error, 'TIMEOUT') || CUT.includes(codeOf(error) ?? '');
}

/** Whether a provider refuses who asks, or how often. */
export function isDenied(error: unknown): boolean {
  return isThrottled(error) || STATUSES_OF_KEYS.includes(statusOf(error) ?? 0);
}

/** Whether the node itself refused, as opposed to a gateway that failed, or a connection that was cut. */
export function isAnswer(error: unknown): boolean {
  if (error instanceof ServiceError)
    return error instanceof AnswerTooLargeError || error.code === 'ANSWER_MALFORMED';
  if (isThrottled(error)) return false;
  if (isError(error, 'SERVER_ERROR')) return REFUSING_STATUSES.includes(statusOf(error) ?? 0);
  return nodeErrorOf(error) !== undefined;
}

/** A node gives the range only in many parts. */
export class RangeTooWideError extends Error {}

/** Whether fewer blocks may be answered: after a refusal, or after too many requests for a wide range. */
export function isRangeRefused(error: unknown): boolean {
  if (error instanceof RangeTooWideError || isThrottled(error)) return true;
  return isAnswer(error) && codeOf(error) !== 'ANSWER_MALFORMED';
}

/** Whether a provider is asked too often, by status 429, its code or its words. */
export function isThrottled(error: unknown): boolean {
  if (statusOf(error) === 429) return true;
  const words = nodeErrorOf(error) ?? '';
  if (EXECUTION_FAILURES.test(words)) return false;
  if (RATE_WORDS.test(textOf(error))) return true;
  const isCoded = RATE_CODES.includes(Number(nodeAnswerOf(error)?.code));
  const isWorded = PAUSE_ASKED.test(words) || (RATED.test(words) && LIMITED.test(words));
  return (isCoded || isWorded) && !OTHER_LIMITS.test(words);
}

/** The longest pause that a provider may ask for: a caller waits. */
const LONGEST_ASKED_MS = 10_000;

/** The pause that a provider asks for, by the header Retry-After or its words; 0 if it asks for none. */
export function wantedPauseMs(error: unknown, now: number): number {
  const header = isError(error, 'SERVER_ERROR') ? error.response?.headers['retry-after'] : undefined;
  const said = textOf(error);
  const [, number = 0, unit = 's'] = BACKOFF_SECONDS.exec(said) ?? PAUSE_ASKED.exec(said) ?? [];
  const wantedMs = retryAfterMsOf(header, now) ?? Number(number) * (unit.startsWith('m') ? 1 : 1_000);
  return Math.min(wantedMs, LONGEST_ASKED_MS);
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
  [/(gas ?price|tip|priority fee).{0,40}(need|requir|\bmin\b|must be|<)\D{0,30}\d/i, 'fee too low'],
  [/intrinsic gas|requires at least \d+ gas|block gas limit|gas cap|gas ?limit.*(exceed|too)/i, 'gas'],
  [/pool is full|tries to replace pending|too distant|too ?far ?in ?future|spammer/i, 'busy'],
  [/too many|limit reached|limit exceeded|try again|timed? ?out|busy/i, 'busy'],
];

/** Messages of nodes that have the transaction already. */
export const ALREADY_KNOWN =
  /already ?known|\bknown transaction|already ?imported|existing tx with same hash/i;

/** Classifies the error that a node answered to a transaction. */
export function classifyRefusal(thrown: unknown): Refusal {
  if (isError(thrown, 'NONCE_EXPIRED')) return 'nonce too low';
  if (isError(thrown, 'REPLACEMENT_UNDERPRICED')) return 'nonce held';
  if (isError(thrown, 'INSUFFICIENT_FUNDS')) return 'no funds';
  if (isThrottled(thrown)) return 'busy';
  const words = nodeErrorOf(thrown) ?? '';
  return WORDS.find(([pattern]) => pattern.test(words))?.[1] ?? 'other';
}

/** JSON-RPC 2.0, section 5.1: wrong parameters. */
const INVALID_PARAMETERS = -32602;
/** Messages for a block tag that a node does not know, also of nodes that use another code. */
const PARAMETER_REFUSALS = /hex string without 0x|invalid (argument|block|param|tag)|(not|un)[- ]?supported/i;

/** Whether a node refuses a parameter, such as a block tag that it does not know. */
export function isParameterRefused(thrown: unknown): boolean {
  const isInvalid = Number(nodeAnswerOf(thrown)?.code) === INVALID_PARAMETERS;
  return isInvalid || PARAMETER_REFUSALS.test(nodeErrorOf(thrown) ?? '');
}

/** JSON-RPC 2.0, section 5.1. */
const METHOD_NOT_FOUND = -32601;
/** Code of a node that has removed old blocks (https://eips.ethereum.org/EIPS/eip-4444). */
const PRUNED_HISTORY = 4444;
const ABSENT_BLOCKS =
  /not found|unknown block|prun(ed|ing)|missing trie node|histor\w* .{0,20}unavailable|block .{0,40}not available/i;

/**
 * Whether a node says that it has no such block, as geth does: "finalized block not found", or that it does
 * not have it any more.
 */
export function isBlockAbsent(thrown: unknown): boolean {
  const code = Number(nodeAnswerOf(thrown)?.code);
  if (code === METHOD_NOT_FOUND) return false;
  return code === PRUNED_HISTORY || ABSENT_BLOCKS.test(nodeErrorOf(thrown) ?? '');
}

/** JSON-RPC 2.0, section 5.1: an internal error, which does not say what failed. */
const INTERNAL_ERROR = -32603;

/**
 * Whether a refusal means that the node does not have the transaction. An internal error, an unknown message,
 * and a load balancer's answer ("busy", "try again") leave that open.
 */
export function isDefinite(thrown: unknown): boolean {
  const refusal = classifyRefusal(thrown);
  const isInternal = Number(nodeAnswerOf(thrown)?.code) === INTERNAL_ERROR;
  return refusal !== 'other' && refusal !== 'busy' && !isInternal;
}

/** Codes of JSON-RPC and geth that say what is wrong with a request. */
const KNOWN_CODES = [-32700, -32600, METHOD_NOT_FOUND, INVALID_PARAMETERS, 3, PRUNED_HISTORY];

/** Whether a node answered with an error that says nothing that is known here. */
export function isUnknown(thrown: unknown): boolean {
  const { code, data } = nodeAnswerOf(thrown) ?? {};
  const words = nodeErrorOf(thrown) ?? 'revert';
  if (data || KNOWN_CODES.includes(Number(code)) || EXECUTION_FAILURES.test(words)) return false;
  if (ALREADY_KNOWN.test(words) || classifyRefusal(thrown) !== 'other') return false;
  return ![isThrottled, isBlockAbsent, isParameterRefused].some((isKnown) => isKnown(thrown));
}

/** Remedies for the failures of a node, by their code. */
const REMEDIES = {
  RPC_KEY_REFUSED: "Check the key of the node's provider, and that it may use this network.",
  RPC_UNREACHABLE: 'Check the node and the plan of its provider, or set RPC_URL to another node.',
  NODE_FAILED: 'If this goes on, ask the provider, or set RPC_URL to another node.',
};

/**
 * A failure of a node as an error of ours, with the node's words. Messages of libraries may contain the URL,
 * so they are not quoted. Undefined for an error that is not of a node.
 */
export function nodeFailure(cause: unknown): ChainError | undefined {
  if (cause instanceof ChainError) return cause;
  if (!isOfEthers(cause) && !(cause instanceof ConnectionError)) return undefined;
  const isRefusal = refusalOf(cause) !== undefined && !isThrottled(cause);
  const code = isKeyRefused(cause) ? 'RPC_KEY_REFUSED' : isRefusal ? 'NODE_FAILED' : 'RPC_UNREACHABLE';
  const remedy = REMEDIES[code];
  return new ChainError(code, `The node ${problemOf(cause)}.`, { cause, remedy });
}

/** Describes a failure of a node, as a clause about it. */
export function problemOf(cause: unknown): string {
  const status = statusOf(cause);
  const words = wordsOf(cause);
  if (isKeyRefused(cause)) return `refuses the key (status ${status})${words}`;
  if (status === 402) return `answers 402: its provider requires payment, or the quota is used up${words}`;
  if (isThrottled(cause)) return `gets too many requests, or the quota is used up${words}`;
  const { location } = partsOf(partsOf(cause).info);
  if (location) return `redirects to ${location as string} (status ${status}): write that in RPC_URL`;
  if (refusalOf(cause) !== undefined) return `answers with an error${words}`;
  if (status !== undefined) return `answers ${status}, not like a node${words}`;
  if (codeOf(cause) === 'ANSWER_MALFORMED')
    return `answers, but not like a node${(partsOf(cause).cause ?? '') as string}`;
  if (isError(cause, 'BAD_DATA') || isError(cause, 'CALL_EXCEPTION')) return 'gives an answer of no use';
  return isError(cause, 'TIMEOUT') ? 'does not answer in time' : 'does not answer';
}

/** Whether the provider does not know the key, or does not allow it to read this chain. */
export function isKeyRefused(cause: unknown): boolean {
  return [401, 403].includes(statusOf(cause) ?? 0);
}

function statusOf(cause: unknown): number | undefined {
  return isError(cause, 'SERVER_ERROR') ? cause.response?.statusCode : undefined;
}

/** The node's own words. They are not those of a page. */
function wordsOf(cause: unknown): string {
  const body = bodyOf(cause);
  return quoted(refusalOf(cause) ?? (/[<{]/.test(body) ? '' : body));
}

/** The message of the node's own error, also in the body of a status that is not 200. */
function refusalOf(cause: unknown): string | undefined {
  const { error } = partsOf(orUndefined(() => JSON.parse(bodyOf(cause)) as unknown));
  const { message } = partsOf(error);
  return nodeErrorOf(cause) ?? (typeof message === 'string' ? message : undefined);
}

function bodyOf(cause: unknown): string {
  const { responseBody = '' } = partsOf(partsOf(cause).info);
  return String(responseBody);
}

/** The message of the node's own error, if the node answered with one. */
export function nodeErrorOf(thrown: unknown): string | undefined {
  const nodeError = nodeAnswerOf(thrown);
  return nodeError && 'message' in nodeError ? String(nodeError.message) : undefined;
}

/** ethers puts the node's error in `error` or `info.error`. */
function nodeAnswerOf(thrown: unknown): Record<string, unknown> | undefined {
  const { error, info } = partsOf(thrown);
  const nodeError = error ?? partsOf(info).error;
  return typeof nodeError === 'object' && nodeError !== null ? partsOf(nodeError) : undefined;
}

/** The message and the node's own answer, without URL and request, which may contain anything. */
function textOf(error: unknown): string {
  const { shortMessage, message, info } = partsOf(error);
  const answer = nodeAnswerOf(error);
  const parts = [shortMessage ?? message, answer && inspect(answer), partsOf(info).responseBody];
  return parts.filter(Boolean).join(' ');
}

function partsOf(thrown: unknown): Record<string, unknown> {
  return typeof thrown === 'object' && thrown !== null
    ? (thrown as Record<string, unknown>)
    : { message: thrown };
}
