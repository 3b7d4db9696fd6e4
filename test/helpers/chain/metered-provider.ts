import type { RequestListener } from 'node:http';
import { systemTime, type Time } from '../../../service/base/time';
import { forwardTo } from '../processes/https-front';
import { startRpcProxy, THROUGH, type Answerer } from './rpc-proxy';

/** Infura's price of a call in credits (docs.metamask.io, "Credit costs"); 80 for other methods. */
const CREDITS: Record<string, number> = {
  eth_chainId: 5,
  net_version: 5,
  eth_estimateGas: 300,
  eth_getLogs: 255,
};
const OTHER_CREDITS = 80;

/** One call of so many is too many. A limit per second would depend on how fast the machine asks. */
const CALLS_PER_REFUSAL = 25;
/** Daily credits of the free plan. */
export const CREDITS_PER_DAY = 3_000_000;

/** A node provider that refuses calls like one with the limits of a free plan. */
export interface MeteredProvider {
  /** Answers `/v3/KEY`. */
  listener: RequestListener;
  /** How many calls were refused as too many. */
  refused(): number;
  /** Refuses no more. */
  lift(): void;
}

/** The credits that this many calls of each method cost. */
export function creditsOf(counts: Record<string, number>): number {
  const costs = Object.entries(counts).map(([method, count]) => count * (CREDITS[method] ?? OTHER_CREDITS));
  return costs.reduce((sum, cost) => sum + cost, 0);
}

/** Starts a provider in front of a node. It accepts one key, and refuses some calls as too many. */
export async function startMeteredProvider(nodeUrl: string, key: string): Promise<MeteredProvider> {
  let refused = 0;
  let asked = 0;
  const answerer: Answerer = () => {
    if (++asked % CALLS_PER_REFUSAL > 0) return 'none';
    refused++;
    const error = { code: -32005, message: 'Too Many Requests' };
    return { status: 429, body: JSON.stringify({ jsonrpc: '2.0', id: 1, error }) };
  };
  const proxy = await startRpcProxy(nodeUrl, answerer);
  const forward = forwardTo(() => proxy.url);
  return {
    refused: () => refused,
    lift: () => proxy.answer(THROUGH),
    listener: (request, response) => {
      if (request.url === `/v3/${key}`) forward(request, response);
      else response.writeHead(401, { 'Content-Type': 'text/plain' }).end('invalid project id\n');
    },
  };
}

/** A bucket that holds the credits of one second. Returns false if it has too few. */
export function createMeter(perSecond: number, time: Time = systemTime): (credits: number) => boolean {
  let held = perSecond;
  let filledAt = time.elapsed();
  return (credits) => {
    const now = time.elapsed();
    held = Math.min(perSecond, held + ((now - filledAt) * perSecond) / 1_000);
    filledAt = now;
    if (held < credits) return false;
    held -= credits;
    return true;
  };
}
