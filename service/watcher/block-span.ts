/** How many blocks to read together: as many as the provider answers for. */
export interface BlockSpan {
  blocks(): number;
  /** The provider refused, or there was more in them than is good to hold at once: read half as many. False: it is one already. */
  shrink(): boolean;
  /** That many were read: try more the next time. */
  grow(): void;
}

/** Starts with the most, and never goes beyond. */
export function createBlockSpan(most: number): BlockSpan {
  let blocks = most;
  return {
    blocks: () => blocks,
    shrink() {
      if (blocks === 1) return false;
      blocks = Math.floor(blocks / 2);
      return true;
    },
    grow() {
      blocks = Math.min(most, Math.ceil(blocks * 1.25));
    },
  };
}
