/** How many may be inside at once, and how many may wait for how long. */
export interface PlacesOptions {
  places: number;
  waiting: number;
  /** Milliseconds. */
  waitMs: number;
}

/** A bounded number of places, and a bounded queue for them: first come, first served. */
export interface Places {
  /**
   * Waits for a place.
   *
   * @param left aborts when whoever waits has gone away.
   * @returns what gives the place back (once; later calls do nothing), or why there is none.
   */
  enter(left: AbortSignal): Promise<(() => void) | 'busy' | 'left'>;
  figures(): { inside: number; waiting: number };
}

type Outcome = (() => void) | 'busy' | 'left';

/** Creates places that are all free. */
export function createPlaces({ places, waiting, waitMs }: PlacesOptions): Places {
  let free = places;
  const queue = new Set<(outcome: Outcome) => void>();

  const place = (): (() => void) => {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const [next] = queue;
      if (next) next(place());
      else free++;
    };
  };

  return {
    figures: () => ({ inside: places - free, waiting: queue.size }),
    async enter(left) {
      if (left.aborted) return 'left';
      if (free > 0) {
        free--;
        return place();
      }
      if (queue.size >= waiting) return 'busy';
      return new Promise<Outcome>((resolve) => {
        const settle = (outcome: Outcome): void => {
          queue.delete(settle);
          clearTimeout(timer);
          left.removeEventListener('abort', leave);
          resolve(outcome);
        };
        const leave = (): void => settle('left');
        const timer = setTimeout(() => settle('busy'), waitMs);
        left.addEventListener('abort', leave);
        queue.add(settle);
      });
    },
  };
}
