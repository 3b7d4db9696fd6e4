import { parseUnits } from 'ethers';
import { request } from 'undici';
import { z } from 'zod';
import { readBounded } from '../base/read-bounded';

/** EIP-1559 fees in wei. */
export interface GasFees {
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

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
export function createGasStation(url: string, timeoutMs = REQUEST_TIMEOUT_MS): FeeSource {
  return async () => {
    // The timeout covers the whole request. A host that accepts the connection, or sends half of the answer,
    // and then stalls would keep a mint waiting.
    const { statusCode, body } = await request(url, { signal: AbortSignal.timeout(timeoutMs) });
    const answer = await readBounded(body, LARGEST_BYTES);
    if (statusCode !== 200) throw new Error(`the gas station answered ${statusCode}`);
    if (answer === undefined) throw new Error(`the gas station sent more than ${LARGEST_BYTES} bytes`);
    const fees = feesOf(JSON.parse(answer.toString('utf8')));
    // Every mint would fail that offers nothing (docs/specification.md 2.9).
    if (fees.maxFeePerGas === 0n) throw new Error('the gas station sent no fee');
    if (fees.maxPriorityFeePerGas <= fees.maxFeePerGas) return fees;
    throw new Error("the gas station's priority fee is higher than its fee");
  };
}

/**
 * Fees of a gas station's answer in exact wei; 0 where the answer has none (docs/specification.md 2.9).
 */
export function feesOf(answer: unknown): GasFees {
  const { standard } = answerSchema.parse(answer);
  return { maxFeePerGas: weiOf(standard?.maxFee), maxPriorityFeePerGas: weiOf(standard?.maxPriorityFee) };
}

/** Converts a decimal number of gwei to wei. Digits after the ninth are below one wei and rounded. */
function weiOf(gweiNumber: number | string | null | undefined): bigint {
  if (typeof gweiNumber === 'string') return weiOfText(gweiNumber);
  return parseUnits((gweiNumber ?? 0).toFixed(GWEI_DECIMALS), GWEI_DECIMALS);
}

/** A number would lose digits that a string may have. */
function weiOfText(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  const wei = BigInt(whole + fraction.padEnd(GWEI_DECIMALS, '0').slice(0, GWEI_DECIMALS));
  return (fraction[GWEI_DECIMALS] ?? '0') < '5' ? wei : wei + 1n;
}
