import { expect } from 'chai';
import { realisedOptions } from '../../service/base/delivery-options';
import { longestPauseMs, nextAttemptAt } from '../../service/delivery/attempt-delivery';

const NOW = 1_800_000_000_000;
const HOURS_24 = 24 * 3_600_000;
const DAYS_3 = 3 * 24 * 3_600_000;

const SCHEDULE = realisedOptions({}).retry;

/** The failed attempt, the random number, what the receiver asks for, and the age of the first attempt. */
interface Failed {
  attempt: number;
  random?: number;
  retryAfterMs?: number;
  agoMs?: number;
}

describe('retry schedule', () => {
  const delayAfter = ({ attempt, random = 0, retryAfterMs, agoMs = 0 }: Failed): number | undefined => {
    const failed = { attempt, firstAttemptedAt: NOW - agoMs, now: NOW, retryAfterMs };
    const at = nextAttemptAt(failed, SCHEDULE, random);
    return at === undefined ? undefined : at - NOW;
  };
  const [late, long] = [DAYS_3 - 5_000, 30 * DAYS_3];

  for (const [what, rows] of Object.entries<[Failed, number | undefined][]>({
    'doubles from one second up to fifteen minutes': [
      [{ attempt: 1 }, 1_000],
      [{ attempt: 2 }, 2_000],
      [{ attempt: 10 }, 512_000],
      [{ attempt: 11 }, 900_000],
      [{ attempt: 1_000 }, 900_000],
    ],
    'shortens a delay by up to half at random': [
      [{ attempt: 1, random: 1 }, 500],
      [{ attempt: 1_000, random: 1 }, 450_000],
    ],
    'waits as long as the receiver asks, up to a day': [
      [{ attempt: 1, retryAfterMs: 120_000 }, 120_000],
      [{ attempt: 1, retryAfterMs: 10 }, 1_000],
      [{ attempt: 1, retryAfterMs: HOURS_24 }, HOURS_24],
      [{ attempt: 1, retryAfterMs: HOURS_24 + 1 }, HOURS_24],
      [{ attempt: 1, retryAfterMs: Number.MAX_VALUE }, HOURS_24],
    ],
    'makes the last attempt three days after the first, whatever the receiver asks, and none later': [
      [{ attempt: 300, agoMs: late }, 5_000],
      [{ attempt: 300, agoMs: late, retryAfterMs: HOURS_24 }, 5_000],
      [{ attempt: 301, agoMs: DAYS_3 }, undefined],
      [{ attempt: 4, agoMs: DAYS_3, retryAfterMs: HOURS_24 }, 900_000],
    ],
    'makes at least 50 attempts even if the deadline passed after a clock change or downtime': [
      [{ attempt: 1, agoMs: long }, 1_000],
      [{ attempt: 4, agoMs: long, retryAfterMs: 60_000 }, 60_000],
      [{ attempt: 49, agoMs: long }, 900_000],
      [{ attempt: 50, agoMs: long }, undefined],
      [{ attempt: 51, agoMs: long }, undefined],
    ],
  }))
    it(what, () => {
      for (const [failed, delay] of rows) expect(delayAfter(failed), JSON.stringify(failed)).to.equal(delay);
    });

  it('waits at most a day, or the maximum if that is longer', () => {
    expect(longestPauseMs(SCHEDULE)).to.equal(HOURS_24);
    const maxDelayMs = 2 * HOURS_24;
    expect(longestPauseMs({ ...SCHEDULE, maxDelayMs })).to.equal(maxDelayMs);
  });

  it('requires no more attempts than fit into a shorter schedule', () => {
    const isTriedAgain = (attempt: number, giveUpAfterMs: number): boolean => {
      const failed = { attempt, firstAttemptedAt: NOW - DAYS_3, now: NOW, retryAfterMs: undefined };
      const schedule = { initialDelayMs: 100, maxDelayMs: 400, giveUpAfterMs };
      return nextAttemptAt(failed, schedule, 0) !== undefined;
    };
    expect(isTriedAgain(1, 0)).to.equal(false);
    // With the longest pauses, attempts are made at once and after 100, 300, 700 and 1,100 ms.
    expect([4, 5].map((attempt) => isTriedAgain(attempt, 1_100))).to.deep.equal([true, false]);
    expect([3, 4].map((attempt) => isTriedAgain(attempt, 1_099))).to.deep.equal([true, false]);
  });
});
