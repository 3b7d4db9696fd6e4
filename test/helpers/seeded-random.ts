/** Random numbers that are the same for the same seed. */
export interface SeededRandom {
  /** From 0 to below 1. */
  fraction(): number;
  /** A whole number from 0 to below `bound`. */
  below(bound: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** This many bytes in hex, with 0x. */
  hex(bytes: number): string;
}

/** mulberry32: 32 bits of state, good enough to choose what a test does next. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(fraction() * bound);
  return {
    fraction,
    below,
    chance: (probability) => fraction() < probability,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new Error('nothing to pick from');
      return list[below(list.length)] as T;
    },
    hex(bytes) {
      const octets = Array.from({ length: bytes }, () => below(256).toString(16).padStart(2, '0'));
      return `0x${octets.join('')}`;
    },
  };
}
