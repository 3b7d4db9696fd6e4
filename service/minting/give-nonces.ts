/** What is known of a wallet's nonces. */
export interface NonceView {
  /** Nonces below this one are used, as far as the lane has ever been told. */
  floor: number;
  /** The node's count of transactions, with those that wait. */
  pending: number;
  /** The highest nonce that the lane holds, if it holds any. */
  highestHeld: number | undefined;
  /** Nonces that the lane gave and took back: those above wait for them. */
  freed: Iterable<number>;
}

/**
 * The next nonces to sign with, in order. What was given back is given first: what was sent with higher nonces waits for it. The node's count has
 * what others sent with this wallet, and is behind when a provider answers from a node that is; so what the lane knows counts as well.
 */
export function giveNonces(count: number, { floor, pending, highestHeld = -1, freed }: NonceView): number[] {
  const lowest = Math.max(floor, pending);
  const next = Math.max(lowest, highestHeld + 1);
  const holes = [...freed].filter((nonce) => nonce >= lowest && nonce < next).sort((a, b) => a - b);
  const given = holes.slice(0, count);
  for (let nonce = next; given.length < count; nonce++) given.push(nonce);
  return given;
}
