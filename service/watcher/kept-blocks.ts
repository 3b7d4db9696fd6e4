import type { KeptBlock } from '../outbox/feeds';

/**
 * The kept blocks after more were read. Blocks older than the finality depth are dropped, except the newest
 * of them: it is not expected to change, so it is always available as a common ancestor.
 *
 * @param kept ascending, like `read`.
 * @param depth number of blocks.
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
