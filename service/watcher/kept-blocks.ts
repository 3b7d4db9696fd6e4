import type { KeptBlock } from '../outbox/feed-cursor';

/**
 * The kept blocks after more were read. Those older than the finality depth go, but for the newest of them:
 * below it nothing is expected to change, so it is the ground that a reorganisation is measured from.
 *
 * @param kept ascending, as are `read`.
 * @param depth blocks.
 */
export function keepRead(kept: readonly KeptBlock[], read: readonly KeptBlock[], depth: number): KeptBlock[] {
  const all = [...kept, ...read];
  const last = all.at(-1)?.number ?? 0;
  const ground = all.findLastIndex(({ number }) => number <= last - depth);
  return all.slice(Math.max(ground, 0));
}

/** The newest kept block that is not above `number`. */
export function newestUpTo(kept: readonly KeptBlock[], number: number): KeptBlock | undefined {
  return kept.findLast((block) => block.number <= number);
}
