import { isHexString, type JsonRpcError, type JsonRpcPayload, type JsonRpcResult } from 'ethers';
import { ChainError } from '../base/errors';

/** The answer to one call. */
export type RpcAnswer = JsonRpcResult | JsonRpcError;

/**
 * Maximum bytes of an answer, after decoding. The largest answer that cannot be requested in parts is the
 * receipt of a transaction that fills its block with logs. A log costs 765 gas at least, and is then about
 * 400 bytes of JSON: a block of 60 million gas, as on Ethereum and Polygon, gives 32 MB. Logs of 64 MB take
 * 230 MB of memory while they are parsed.
 */
export const LARGEST_ANSWER_BYTES = 64_000_000;
/**
 * Maximum number of arrays and objects in an answer: three times those of 64 MB of logs. Each may take 90
 * bytes of memory, however short it is.
 */
const MOST_BRACKETS = 1_000_000;
/** A quantity has 256 bits at most. */
const LONGEST_QUANTITY = 66;

/** The answer is too large to be read. A range of blocks is read in parts then. */
export class AnswerTooLargeError extends ChainError {
  constructor() {
    const remedy = 'If this goes on, point RPC_URL at another node.';
    const problem = `The node's answer is larger than ${LARGEST_ANSWER_BYTES / 1e6} MB`;
    super('RPC_UNREACHABLE', `${problem}, or has more than a million arrays and objects. ${remedy}`, {
      retryable: true,
      remedy,
    });
  }
}

/** An answer that a node should not give. */
export function malformed(method: string): ChainError {
  const message = `The node's answer to ${method} is not valid JSON-RPC.`;
  return new ChainError('ANSWER_MALFORMED', message, { retryable: true });
}

/**
 * Parses an answer.
 *
 * @throws AnswerTooLargeError; SyntaxError when it is not JSON.
 */
export function parseAnswer(body: Buffer): unknown {
  let brackets = 0;
  for (let at = 0; at < body.length; at++) if (body[at] === OBJECT || body[at] === ARRAY) brackets++;
  if (brackets > MOST_BRACKETS) throw new AnswerTooLargeError();
  return JSON.parse(body.toString('utf8'));
}

const [OBJECT, ARRAY] = Buffer.from('{[');

/**
 * The answer to each call, in the same order. An error without an id answers every call that has no other
 * answer: JSON-RPC 2.0, section 5.
 *
 * @throws ChainError ANSWER_MALFORMED (retryable) when a call has no answer, or one of the wrong type.
 */
export function answersTo(payload: JsonRpcPayload | JsonRpcPayload[], answer: unknown): RpcAnswer[] {
  const answers = (Array.isArray(answer) ? answer : [answer]).filter(isObject);
  return [payload].flat().map(({ id, method }) => {
    const found = answers.find((one) => one.id === id) ?? answers.find((one) => one.id === null && one.error);
    const { error, result } = found ?? {};
    if (isObject(error) && typeof error.message === 'string')
      return { id, error: error as JsonRpcError['error'] };
    if (error || result === undefined || RESULTS[method]?.(result) === false) throw malformed(method);
    return { id, result };
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isQuantity(result: unknown): boolean {
  return isHexString(result) && result !== '0x' && result.length <= LONGEST_QUANTITY;
}

function isData(result: unknown): boolean {
  return isHexString(result) && result.length % 2 === 0;
}

function isObjectOrNull(result: unknown): boolean {
  return isObject(result) || result === null;
}

/** The types of results. What a block, a transaction or a log contains is checked where it is read. */
const RESULTS: Record<string, (result: unknown) => boolean> = {
  eth_blockNumber: isQuantity,
  eth_call: isData,
  eth_chainId: isQuantity,
  eth_estimateGas: isQuantity,
  eth_gasPrice: isQuantity,
  eth_getBalance: isQuantity,
  eth_getBlockByHash: isObjectOrNull,
  eth_getBlockByNumber: isObjectOrNull,
  eth_getCode: isData,
  eth_getLogs: Array.isArray,
  eth_getTransactionByBlockHashAndIndex: isObjectOrNull,
  eth_getTransactionByHash: isObjectOrNull,
  eth_getTransactionCount: isQuantity,
  eth_getTransactionReceipt: isObjectOrNull,
  eth_maxPriorityFeePerGas: isQuantity,
  eth_sendRawTransaction: isData,
};
