import { createHash } from 'node:crypto';
import { formatEther } from 'ethers';
import { type Time, repeat } from '../base/time';
import { shared } from '../base/shared-answers';
import type { Overview, RegistryView, Sample } from './views';
import type { IssuingReport } from '../observability/issuing-report';
import { missingSettings, shownConditions } from '../observability/problems';
import type { Snapshot, TakeSnapshot } from '../observability/snapshot';
import { progressOf, type FollowedFeed } from '../watcher/feed-status';

/** Sources of the overview. */
export interface OverviewSources {
  time: Time;
  currency: string;
  missing: readonly string[];
  /** Shared as SHARING_OF_OVERVIEW says. */
  takeSnapshot: TakeSnapshot;
  /** A text that changes with every event and attempt. */
  moved(this: void): Promise<string>;
  plots(this: void): Overview['plots'];
}

/** Pages ask every second: a little less, so that each of these questions is answered anew. */
const WHOLE_MS = 900;
const WHOLE_WITHIN_MS = 10_000;
const PART_WITHIN_MS = 2_000;

/** Figures take longer the more there is to count. The last ones are shown until the next come. */
export const SHARING_OF_OVERVIEW = { leastMs: 500, keptMs: Infinity, isPaced: true };

/**
 * Creates a function that gives the overview. It is made at most once a second, for all that ask.
 *
 * @throws if it cannot be made in time.
 */
export function createOverview(sources: OverviewSources): () => Promise<Overview> {
  const { time, takeSnapshot, missing, currency, plots } = sources;
  const readMoved = shared(sources.moved, { time, keptMs: Infinity });
  const whole = shared(
    async () => {
      const [snapshot, moved] = await Promise.all([takeSnapshot(PART_WITHIN_MS), readMoved(PART_WITHIN_MS)]);
      const { now, feeds, issuing, conditions = [], outboxes, subscriptions } = snapshot;
      const registries = feeds.map((feed) => registryView(feed, outboxes, now));
      const problems = [...shownConditions(conditions, now), ...missingSettings(missing)];
      const shown = issuing && issuingView(issuing, currency);
      const followed = registries.map((one) => [one.registry, one.state, one.waiting, one.deadLetters]);
      // Pages read again when the revision changes: a new block alone changes nothing for them.
      const changing = [moved, followed, shown?.mints && { ...shown.mints, oldestSeconds: 0 }];
      return {
        at: now,
        revision: createHash('sha256').update(JSON.stringify(changing)).digest('base64url').slice(0, 16),
        problems,
        registries,
        issuing: shown ?? null,
        subscriptions: subscriptions ?? { active: 0, paused: 0, gone: 0 },
        plots: plots(),
      };
    },
    { time, leastMs: WHOLE_MS },
  );
  return async () => {
    const overview = await whole(WHOLE_WITHIN_MS);
    if (overview === undefined) throw new Error('The overview could not be made in time.');
    return overview;
  };
}

function registryView(
  { name, network, chainId, registry, status }: FollowedFeed,
  outboxes: Snapshot['outboxes'],
  now: number,
): RegistryView {
  const own = outboxes?.find((one) => one.registry === name);
  const catchUp = progressOf(status, now);
  const { reason = catchUp?.reason } = status;
  return { ...own, network, chainId, registry, ...status, reason, lagBlocks: lagOf(status), catchUp };
}

function issuingView(
  { mints, signing, wallet }: IssuingReport,
  currency: string,
): NonNullable<Overview['issuing']> {
  if (wallet === undefined) return { mints, signing, wallet };
  const { address, balanceWei, mintsAffordable, isGasEstimated } = wallet;
  const balance = formatEther(balanceWei);
  return { mints, signing, wallet: { address, balance, currency, mintsAffordable, isGasEstimated } };
}

const EVERY_MS = 10_000;
const MOST_SAMPLES = 180;
const SAMPLES_A_MINUTE = 6;

/** Samples the last half hour for plots, every ten seconds until `stop`. It needs no database. */
export function startSamples(time: Time, feeds: () => readonly FollowedFeed[]) {
  const lag: Sample[] = [];
  const deliveriesPerMinute: Sample[] = [];
  /** The deliveries of the last minute, by sample. */
  const counts: number[] = [];
  let deliveries = 0;

  async function sample(): Promise<void> {
    const at = time.now();
    keep(counts, deliveries, SAMPLES_A_MINUTE);
    keep(deliveriesPerMinute, [at, counts.reduce((sum, count) => sum + count, 0)]);
    deliveries = 0;
    const lags = feeds().flatMap(({ status }) => lagOf(status) ?? []);
    if (lags.length > 0) keep(lag, [at, Math.max(...lags)]);
  }

  const sampling = repeat(time, sample, EVERY_MS, EVERY_MS);
  return {
    /** Counts a successful delivery. */
    delivered: () => void deliveries++,
    plots: (): Overview['plots'] => ({ lag: [...lag], deliveriesPerMinute: [...deliveriesPerMinute] }),
    stop: () => sampling.stop(),
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
