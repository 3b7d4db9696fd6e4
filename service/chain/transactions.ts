import { type FeeData, isError, keccak256 } from 'ethers';
import { request } from 'undici';
import * as z from 'zod';
import { ChainError } from '../base/errors';
import { readBounded } from '../base/read-bounded';
import { type Time, within } from '../base/time';
import type { FeeTerms, GasPricing } from './networks';
import type { Rpc } from './node';
import { ALREADY_KNOWN, classifyRefusal, nodeErrorOf } from './node-errors';

/**
 * The gas price of a transaction in wei, in the fields of ethers and JSON-RPC. `type` is the transaction type
 * of EIP-2718.
 */
export type TransactionFees =
  { type: 2; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint } | { type: 0; gasPrice: bigint };

/** The sources of fees. */
export interface FeeReading extends Omit<FeeTerms, 'stationUrl'> {
  /** The network's gas station, if it has one. */
  readStation: FeeSource | undefined;
  /** The node's estimate: `estimateFees`. */
  readNode: () => Promise<FeeEstimate>;
  /** Called when the gas station fails and the node's estimate is used. */
  warn: (message: string, cause: unknown) => void;
}

/**
 * The fees of the next transaction. The gas station is asked first (docs/specification.md 2.9): it knows the
 * fees that get a transaction mined on its network, which nodes often do not.
 *
 * @throws ChainError FEES_UNKNOWN (retryable) when the node has no gas price; also any other error of the
 *   node.
 */
export async function readFees({
  gasPricing,
  leastGwei,
  readStation,
  readNode,
  warn,
}: FeeReading): Promise<TransactionFees> {
  if (gasPricing === 'free') return { type: 0, gasPrice: 0n };
  if (gasPricing === 'eip-1559' && readStation !== undefined) {
    try {
      return withLeastTip({ type: 2, ...(await readStation()) }, weiOf(leastGwei));
    } catch (cause) {
      warn("The gas station gives no usable fees: the node's own estimate is used", cause);
    }
  }
  return withLeastTip(estimatedFees(gasPricing, await readNode()), weiOf(leastGwei));
}

/** The highest price per unit of gas, in wei. */
export function highestGasPrice(fees: TransactionFees): bigint {
  return fees.type === 2 ? fees.maxFeePerGas : fees.gasPrice;
}

/** The same fees if they offer this much, or with this priority fee. A legacy price contains it. */
export function withLeastTip(fees: TransactionFees, tip: bigint): TransactionFees {
  const missing = tip - (fees.type === 0 ? fees.gasPrice : fees.maxPriorityFeePerGas);
  if (missing <= 0n) return fees;
  if (fees.type === 0) return { type: 0, gasPrice: tip };
  return { type: 2, maxFeePerGas: fees.maxFeePerGas + missing, maxPriorityFeePerGas: tip };
}

/** Any more than this is set by hand: a node may name anything, or mean something else. */
const MOST_NAMED_TIP = 100_000_000_000n;
/** A number of wei, unless it is one of gwei, that nodes and gateways ask for at least. */
const NAMED_FEE = /(?:need|requir|minimum|\bmin\b|at least|must be|<)\D{0,30}?(\d+(?:\.\d+)?) ?(gwei)?/gi;
/** A comma between thousands. */
const THOUSANDS = /(?<=\d),(?=\d{3}(?!\d))/g;

/** The least priority fee that a node's refusal names; 0 if it names none that is believed. */
export function namedTip(refusal: string): bigint {
  if (!/\btip\b|priority|gas ?price/i.test(refusal)) return 0n;
  const named = [...refusal.replace(THOUSANDS, '').matchAll(NAMED_FEE)].map(([, number = '', unit]) =>
    unit || number.includes('.') ? weiOf(number) : BigInt(number),
  );
  const highest = named.reduce((most, fee) => (fee > most ? fee : most), 0n);
  return highest > MOST_NAMED_TIP ? 0n : highest;
}

/** What helps when a node goes on refusing fees. */
export const LEAST_FEE_REMEDY = 'Set LEAST_PRIORITY_FEE_GWEI to what the node asks for, in gwei';

/** The error of a refused transaction. `reason`: the node's words, without secrets. */
export function notAccepted(reason: string, cause: unknown, retryable = false): ChainError {
  const remedy = classifyRefusal(cause) === 'fee too low' ? `${LEAST_FEE_REMEDY}.` : undefined;
  const message = `The transaction was not accepted: ${reason}${remedy ? `. ${remedy}` : ''}`;
  return new ChainError('TRANSACTION_REJECTED', message, { cause, remedy, retryable });
}

/** A node's gas prices in wei; null if it has none. */
export type FeeEstimate = Pick<FeeData, 'gasPrice' | 'maxFeePerGas' | 'maxPriorityFeePerGas'>;

/** The priority fee in wei if a node does not suggest one. */
const USUAL_TIP = 1_000_000_000n;

/** Asks a node for its gas prices. The highest fee leaves room for a base fee that doubles. */
export async function estimateFees(client: Rpc): Promise<FeeEstimate> {
  const priceOf = (method: string): Promise<bigint | null> =>
    client.send(method, []).then(
      (price) => BigInt(String(price)),
      () => null,
    );
  const [block, gasPrice, tip] = await Promise.all([
    client.send('eth_getBlockByNumber', ['latest', false]),
    priceOf('eth_gasPrice'),
    priceOf('eth_maxPriorityFeePerGas'),
  ]);
  const { baseFeePerGas } = (block ?? {}) as { baseFeePerGas?: string };
  if (!Number(baseFeePerGas ?? 0)) return { gasPrice, maxFeePerGas: null, maxPriorityFeePerGas: null };
  const maxPriorityFeePerGas = tip ?? USUAL_TIP;
  return {
    gasPrice,
    maxFeePerGas: BigInt(String(baseFeePerGas)) * 2n + maxPriorityFeePerGas,
    maxPriorityFeePerGas,
  };
}

/** A node without a base fee uses a legacy gas price, whatever the network table says. */
function estimatedFees(gasPricing: GasPricing, estimate: FeeEstimate): TransactionFees {
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = estimate;
  const hasBaseFee = maxFeePerGas !== null && maxPriorityFeePerGas !== null;
  if (gasPricing === 'eip-1559' && hasBaseFee) return { type: 2, maxFeePerGas, maxPriorityFeePerGas };
  if (gasPrice !== null) return { type: 0, gasPrice };
  throw new ChainError('FEES_UNKNOWN', 'The node returns no gas price.');
}

/** EIP-1559 fees in wei. */
export type GasFees = Omit<Extract<TransactionFees, { type: 2 }>, 'type'>;

/** Reads the fees to attach to the next transaction. */
export type FeeSource = () => Promise<GasFees>;

const REQUEST_TIMEOUT_MS = 5_000;
/** An answer takes less than a kilobyte. */
const LARGEST_BYTES = 64 * 1024;
const GWEI_DECIMALS = 9;

/** Some stations send numbers as strings. */
const gwei = z.union([z.number().nonnegative(), z.string().regex(/^\d+(\.\d+)?$/)]).nullish();
const answerSchema = z.object({ standard: z.object({ maxFee: gwei, maxPriorityFee: gwei }).optional() });

/**
 * Reads the fees of a Polygon gas station (https://docs.polygon.technology/tools/gas/polygon-gas-station/):
 * gwei, as numbers or as text.
 */
export function createGasStation(url: string, time: Time, timeoutMs = REQUEST_TIMEOUT_MS): FeeSource {
  // The timeout covers the whole request. A host that accepts the connection, or sends half of the answer,
  // and then stalls would keep a mint waiting.
  return () => within(time, timeoutMs, (late) => readGasStation(url, late));
}

async function readGasStation(url: string, signal: AbortSignal): Promise<GasFees> {
  const { statusCode, body } = await request(url, { signal });
  const answer = await readBounded(body, LARGEST_BYTES);
  if (statusCode !== 200) throw new Error(`the gas station answered ${statusCode}`);
  if (answer === undefined) throw new Error(`the gas station sent more than ${LARGEST_BYTES} bytes`);
  const fees = feesOf(JSON.parse(answer.toString('utf8')));
  // Every mint would fail that offers nothing (docs/specification.md 2.9).
  if (fees.maxFeePerGas === 0n) throw new Error('the gas station sent no fee');
  if (fees.maxPriorityFeePerGas <= fees.maxFeePerGas) return fees;
  throw new Error("the gas station's priority fee is higher than its fee");
}

/**
 * Fees of a gas station's answer in exact wei; 0 where the answer has none (docs/specification.md 2.9).
 */
export function feesOf(answer: unknown): GasFees {
  const { standard } = answerSchema.parse(answer);
  return { maxFeePerGas: weiOf(standard?.maxFee), maxPriorityFeePerGas: weiOf(standard?.maxPriorityFee) };
}

/**
 * Converts a decimal number of gwei to wei. Digits after the ninth are below one wei and rounded. A text does
 * not become a number, which would lose digits.
 */
function weiOf(gweiNumber: number | string | null | undefined): bigint {
  const text = typeof gweiNumber === 'string' ? gweiNumber : (gweiNumber ?? 0).toFixed(GWEI_DECIMALS);
  const [whole = '', fraction = ''] = text.split('.');
  const wei = BigInt(whole + fraction.padEnd(GWEI_DECIMALS, '0').slice(0, GWEI_DECIMALS));
  return (fraction[GWEI_DECIMALS] ?? '0') < '5' ? wei : wei + 1n;
}

/**
 * The result of giving a signed transaction to a node:
 *
 * - `taken`: the node has it, now or already before.
 * - `refused`: the node said no.
 * - `open`: the connection failed or the node timed out, so the node may have it.
 */
export type Broadcast = { state: 'taken' } | { state: 'refused' | 'open'; cause: unknown };

/** Messages of nodes and gateways that do not know the result of a request themselves. */
const TIME_OVER = /timed? ?out|deadline exceeded/i;

/**
 * Sends one signed transaction to a node, once. The same bytes may be sent again after any result, because
 * they cannot be mined twice. A node that mines at once answers with an error when a transaction was mined
 * and reverted; a transaction that the node knows therefore counts as taken.
 */
export async function broadcast(client: Rpc, raw: string): Promise<Broadcast> {
  try {
    await client.send('eth_sendRawTransaction', [raw]);
    return { state: 'taken' };
  } catch (cause) {
    const isThere =
      ALREADY_KNOWN.test(nodeErrorOf(cause) ?? '') ||
      (await knows(client, keccak256(raw)).catch(() => false));
    if (isThere) return { state: 'taken' };
    return { state: isAnswer(cause) ? 'refused' : 'open', cause };
  }
}

/** Whether a node has a transaction, pending or mined. Rejects when the node cannot be asked. */
export async function knows(client: Rpc, hash: string): Promise<boolean> {
  return (await client.send('eth_getTransactionByHash', [hash])) !== null;
}

/** Whether the node itself refused this transaction, as opposed to a connection that failed. */
function isAnswer(thrown: unknown): boolean {
  const answer = isError(thrown, 'SERVER_ERROR') ? undefined : nodeErrorOf(thrown);
  return answer !== undefined && !TIME_OVER.test(answer);
}
