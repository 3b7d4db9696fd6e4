import { expect } from 'chai';
import { realisedOptions } from '../../service/base/delivery-options';
import { nextAttemptAt } from '../../service/delivery/retry-schedule';

const NOW = 1_800_000_000_000;
const HOURS_24 = 24 * 3_600_000;
const DAYS_3 = 3 * 24 * 3_600_000;

const SCHEDULE = realisedOptions({}).retry;

describe('retry schedule', () => {
  const delayAfter = (
    attempt: number,
    { random = 0, retryAfterMs = undefined as number | undefined, agoMs = 0 } = {},
  ): number | undefined => {
    const failed = { attempt, firstAttemptedAt: NOW - agoMs, now: NOW, retryAfterMs };
    const at = nextAttemptAt(failed, SCHEDULE, random);
    return at === undefined ? undefined : at - NOW;
  };

  it('doubles from one second up to fifteen minutes, shortened by up to half at random', () => {
    const delays = (random: number) => [1, 2, 10, 11, 1000].map((attempt) => delayAfter(attempt, { random }));
    expect(delays(0)).to.deep.equal([1_000, 2_000, 512_000, 900_000, 900_000]);
    expect(delays(1)).to.deep.equal([500, 1_000, 256_000, 450_000, 450_000]);
  });

  it('waits as long as the receiver asks, up to a day', () => {
    const asked = [10, 120_000, HOURS_24, HOURS_24 + 1, Number.MAX_VALUE];
    const delays = asked.map((retryAfterMs) => delayAfter(1, { retryAfterMs }));
    expect(delays).to.deep.equal([1_000, 120_000, HOURS_24, HOURS_24, HOURS_24]);
  });

  it('makes the last attempt three days after the first, whatever the receiver asks, and none later', () => {
    const agoMs = DAYS_3 - 5_000;
    expect(delayAfter(300, { agoMs })).to.equal(5_000);
    for (const attempt of [3, 300])
      expect(delayAfter(attempt, { agoMs, retryAfterMs: HOURS_24 })).to.equal(5_000);
    expect(delayAfter(301, { agoMs: DAYS_3 })).to.equal(undefined);
    expect(delayAfter(4, { agoMs: DAYS_3, retryAfterMs: HOURS_24 })).to.equal(900_000);
  });

  it('makes at least 50 attempts even if the deadline passed after a clock change or downtime', () => {
    const agoMs = 30 * DAYS_3;
    const delays = [1, 2, 4, 49, 50, 51].map((attempt) => delayAfter(attempt, { agoMs }));
    expect(delays).to.deep.equal([1_000, 2_000, 8_000, 900_000, undefined, undefined]);
    expect(delayAfter(4, { agoMs, retryAfterMs: 60_000 })).to.equal(60_000);
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
