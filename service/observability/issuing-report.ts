import type { MintFigures } from '../journal/mint-figures';
import type { Clock } from '../base/clock';
import { answerInTime } from './answer-in-time';
import type { LastFailure } from './mint-outcomes';
import type { WalletFigures } from './wallet-reading';

/** How issuing stands. */
export interface IssuingReport {
  /** Of all processes that share the database; undefined while it cannot be asked. */
  mints: MintsReport | undefined;
  signing: SigningFigures;
  /** Undefined until it was read for the first time. */
  wallet: WalletFigures | undefined;
}

/** How the mints stand, and the last one that failed in this process. */
export interface MintsReport extends Pick<MintFigures, 'waiting' | 'inFlight' | 'mined'> {
  /** Age of the oldest that is neither mined nor failed, in seconds; undefined when there is none. */
  oldestSeconds: number | undefined;
  lastFailure: LastFailure | undefined;
}

/** Documents that wait for a thread that signs, threads that are at work, and threads. */
export interface SigningFigures {
  waiting: number;
  busy: number;
  threads: number;
}

/** Where the figures come from. */
export interface IssuingSources {
  mints: () => Promise<MintFigures>;
  lastFailure: () => LastFailure | undefined;
  signing: () => SigningFigures;
  wallet: () => WalletFigures | undefined;
  clock: Clock;
}

/** Makes what gives the report; it takes no longer than the milliseconds given, whatever hangs. */
export function createIssuingReport(sources: IssuingSources): (withinMs: number) => Promise<IssuingReport> {
  const { lastFailure, signing, wallet, clock } = sources;
  const askForMints = answerInTime(sources.mints);
  return async (withinMs) => {
    const figures = await askForMints(withinMs);
    return {
      mints: figures && { ...mintsReportOf(figures, clock.now()), lastFailure: lastFailure() },
      signing: signing(),
      wallet: wallet(),
    };
  };
}

/** Another process, whose clock may be ahead, may have added the oldest. */
function mintsReportOf(
  { oldestAddedAt, ...counts }: MintFigures,
  now: number,
): Omit<MintsReport, 'lastFailure'> {
  const oldestSeconds =
    oldestAddedAt === undefined ? undefined : Math.max(0, Math.floor((now - oldestAddedAt) / 1000));
  return { ...counts, oldestSeconds };
}
