import { parseUnits } from 'ethers';
import { request } from 'undici';
import { z } from 'zod';

/** EIP-1559 fees in wei. */
export interface GasFees {
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

/** Reads the fees to attach to the next transaction. */
export type FeeSource = () => Promise<GasFees>;

const REQUEST_TIMEOUT_MS = 5_000;
const GWEI_DECIMALS = 9;

const gwei = z.number().nonnegative().optional();
const answerSchema = z.object({ standard: z.object({ maxFee: gwei, maxPriorityFee: gwei }).optional() });

/** Reads the fees of a Polygon gas station (https://docs.polygon.technology/tools/gas/polygon-gas-station/): gwei, as JSON numbers. */
export function createGasStation(url: string): FeeSource {
  return async () => {
    const { statusCode, body } = await request(url, {
      headersTimeout: REQUEST_TIMEOUT_MS,
      bodyTimeout: REQUEST_TIMEOUT_MS,
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`the gas station answered ${statusCode}`);
    return feesOf(JSON.parse(text));
  };
}

/** Fees of a gas station's answer in exact wei; 0 where the answer has none (the document, POST /create, step 9). */
export function feesOf(answer: unknown): GasFees {
  const { standard } = answerSchema.parse(answer);
  return { maxFeePerGas: weiOf(standard?.maxFee), maxPriorityFeePerGas: weiOf(standard?.maxPriorityFee) };
}

/** A decimal number of gwei in wei. Digits after the ninth are below one wei and rounded. */
function weiOf(gweiNumber: number | undefined): bigint {
  return parseUnits((gweiNumber ?? 0).toFixed(GWEI_DECIMALS), GWEI_DECIMALS);
}
