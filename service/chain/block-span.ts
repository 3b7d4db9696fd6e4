/** How many blocks to read together: as many as the provider answers for. */
export interface BlockSpan {
  blocks(): number;
  /**
   * The provider refused, or there was more in them than is good to hold at once: read half as many. False:
   * it is one already.
   */
  shrink(): boolean;
  /** That many were read: try more the next time. */
  grow(): void;
  /**
   * A block could not be read by itself. Gives whether it is the one that could not be read the last time.
   */
  failedAgain(block: number): boolean;
}

/** Starts with the most, and never goes beyond. */
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
