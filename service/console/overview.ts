import { createHash } from 'node:crypto';
import { formatEther } from 'ethers';
import type { Clock } from '../base/clock';
import { registryName, type RegistryName } from '../base/registry-name';
import { answerInTime, atMostEvery, paced } from '../base/shared-answers';
import type { ReportedFeed } from '../observability/health';
import type { IssuingReport } from '../observability/issuing-report';
import type { Unfollowed } from '../observability/unfollowed';
import type { OutboxFigures } from '../outbox/outbox-figures';
import type { SubscriptionsHealth } from '../subscriptions/subscription-health';
import { problemsOf } from './problems';
import { lagOf } from './samples';
import type { Overview, RegistryView } from './views';

/** Sources of the overview. A source that resolves to undefined is not known now. */
export interface OverviewSources {
  clock: Clock;
  currency: string;
  missing: readonly string[];
  feeds(this: void): readonly ReportedFeed[];
  figures(this: void): Promise<readonly ({ registry: RegistryName } & OutboxFigures)[] | undefined>;
  issuing(this: void): Promise<IssuingReport | undefined>;
  subscriptions(this: void): Promise<SubscriptionsHealth | undefined>;
  /** The time before which failures must have begun to count. */
  failingBefore(this: void): number;
  unfollowed(this: void): Promise<Unfollowed | undefined>;
  /** A text that changes with every event and attempt. */
  moved(this: void): Promise<string>;
  plots(this: void): Overview['plots'];
}

/** Pages ask every second: a little less, so that each of these questions is answered anew. */
const WHOLE_MS = 900;
const PART = { leastMs: 500, withinMs: 2_000 };

/** Creates a function that gives the overview. It is made at most once a second, for all that ask. */
export function createOverview(sources: OverviewSources): () => Promise<Overview> {
  const { clock } = sources;
  const slow = {
    figures: paced(sources.figures, clock, PART),
    issuing: paced(sources.issuing, clock, PART),
    subscriptions: paced(sources.subscriptions, clock, PART),
    unfollowed: paced(sources.unfollowed, clock, PART),
  };
  const askForMoved = answerInTime(sources.moved);
  let moved: string | undefined;
  return atMostEvery(
    async () => {
      const [figures, issuing, subscriptions, unfollowed, movedTo = moved] = await Promise.all([
        slow.figures(),
        slow.issuing(),
        slow.subscriptions(),
        slow.unfollowed(),
        askForMoved(PART.withinMs),
      ]);
      moved = movedTo;
      const now = clock.now();
      const feeds = sources.feeds();
      const { missing, failingBefore, plots } = sources;
      const registries = feeds.map((feed) => registryView(feed, figures));
      const problems = problemsOf({
        now,
        feeds,
        registries,
        missing,
        issuing,
        subscriptions,
        failingBefore: failingBefore(),
        unfollowed,
      });
      const shown = issuing && issuingView(issuing, sources.currency);
      const followed = registries.map(({ registry, state, waiting, deadLetters }) => {
        return { registry, state, waiting, deadLetters };
      });
      // Pages read again when the revision changes: a new block alone changes nothing for them.
      const changing = [moved, followed, shown?.mints && { ...shown.mints, oldestSeconds: 0 }];
      return {
        at: now,
        revision: createHash('sha256').update(JSON.stringify(changing)).digest('base64url').slice(0, 16),
        problems,
        registries,
        issuing: shown ?? null,
        subscriptions: { active: 0, paused: 0, gone: 0, ...subscriptions?.byState },
        plots: plots(),
      };
    },
    clock,
    WHOLE_MS,
  );
}

function registryView(
  { network, chainId, registry, status }: ReportedFeed,
  figures: readonly ({ registry: RegistryName } & OutboxFigures)[] | undefined,
): RegistryView {
  const own = figures?.find((one) => one.registry === registryName(chainId, registry));
  const { state, since, headBlock, nextBlock, reason } = status;
  return {
    network,
    chainId,
    registry,
    state,
    since,
    headBlock: headBlock ?? null,
    readUpTo: nextBlock === undefined ? null : nextBlock - 1,
    lagBlocks: lagOf(status) ?? null,
    reason: reason ?? null,
    waiting: own?.waiting ?? null,
    deadLetters: own?.deadLetters ?? null,
  };
}

function issuingView(
  { mints, signing, wallet }: IssuingReport,
  currency: string,
): NonNullable<Overview['issuing']> {
  return {
    mints: mints
      ? {
          waiting: mints.waiting,
          inFlight: mints.inFlight,
          mined: mints.mined,
          oldestSeconds: mints.oldestSeconds ?? null,
        }
      : null,
    signing,
    wallet: wallet
      ? {
          address: wallet.address,
          balance: formatEther(wallet.balanceWei),
          currency,
          mintsAffordable: wallet.mintsAffordable ?? null,
        }
      : null,
  };
}
