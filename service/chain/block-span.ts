/** The number of blocks to read at once, adapted to the provider's limits. */
export interface BlockSpan {
  blocks(): number;
  /**
   * Halves the span after the provider refused, or when the answer was too large to hold at once. Returns
   * false when it is already one block.
   */
  shrink(): boolean;
  /** Widens the span after a successful read. */
  grow(): void;
  /** Notes that a block could not be read by itself. Returns whether the same block failed the last time. */
  failedAgain(block: number): boolean;
}

/** Starts with `most` blocks and never exceeds that. */
export function createBlockSpan(most: number): BlockSpan {
  let blocks = most;
  let failed: number | undefined;
  return {
    blocks: () => blocks,
    shrink() {
      if (blocks === 1) return false;
      blocks = Math.floor(blocks / 2);
      return true;
    },
    grow() {
      blocks = Math.min(most, Math.ceil(blocks * 1.25));
      failed = undefined;
    },
    failedAgain(block) {
      const isAgain = failed === block;
      failed = block;
      return isAgain;
    },
  };
}
