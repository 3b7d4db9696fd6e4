import type { Clock } from '../base/clock';
import type { FollowedFeed } from '../watcher/feed-status';
import type { Overview, Sample } from './views';

/** Measurements of the last half hour, for plots. They need no database. */
export interface Samples {
  /** Counts a successful delivery. */
  delivered(this: void): void;
  plots(this: void): Overview['plots'];
  stop(this: void): void;
}

const EVERY_MS = 10_000;
const MOST_SAMPLES = 180;
const SAMPLES_A_MINUTE = 6;

/** Takes a sample every ten seconds until `stop`. */
export function startSamples(feeds: () => readonly FollowedFeed[], clock: Clock): Samples {
  const lag: Sample[] = [];
  const deliveriesPerMinute: Sample[] = [];
  /** The deliveries of the last minute, by sample. */
  const counts: number[] = [];
  let deliveries = 0;
  const timer = setInterval(() => {
    const at = clock.now();
    keep(counts, deliveries, SAMPLES_A_MINUTE);
    keep(deliveriesPerMinute, [at, counts.reduce((sum, count) => sum + count, 0)]);
    deliveries = 0;
    const lags = feeds().flatMap(({ status }) => lagOf(status) ?? []);
    if (lags.length > 0) keep(lag, [at, Math.max(...lags)]);
  }, EVERY_MS);
  timer.unref();
  return {
    delivered: () => void deliveries++,
    plots: () => ({ lag: [...lag], deliveriesPerMinute: [...deliveriesPerMinute] }),
    stop: () => clearInterval(timer),
  };
}

/** Blocks between the head and the last block that was read. Undefined if one of them is not known. */
export function lagOf({ headBlock, nextBlock }: FollowedFeed['status']): number | undefined {
  if (headBlock === undefined || nextBlock === undefined) return undefined;
  return Math.max(0, headBlock - nextBlock + 1);
}

function keep<T>(samples: T[], sample: T, most = MOST_SAMPLES): void {
  samples.push(sample);
  if (samples.length > most) samples.shift();
}
