import { expect } from 'chai';
import { realisedOptions } from '../../service/base/delivery-options';
import { longestPauseMs, nextAttemptAt } from '../../service/delivery/attempt-delivery';

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

  it('doubles from one second up to fifteen minutes', () => {
    const delays = [1, 2, 3, 10, 11, 1000].map((attempt) => delayAfter(attempt));
    expect(delays).to.deep.equal([1_000, 2_000, 4_000, 512_000, 900_000, 900_000]);
  });

  it('shortens a delay by up to half at random', () => {
    const delays = [1, 2, 3, 10, 11, 1000].map((attempt) => delayAfter(attempt, { random: 1 }));
    expect(delays).to.deep.equal([500, 1_000, 2_000, 256_000, 450_000, 450_000]);
  });

  it('waits as long as the receiver asks, up to a day', () => {
    expect(delayAfter(1, { retryAfterMs: 120_000 })).to.equal(120_000);
    expect(delayAfter(1, { retryAfterMs: 10 })).to.equal(1_000);
    expect(delayAfter(1, { retryAfterMs: 3_600_000 })).to.equal(3_600_000);
    expect(delayAfter(1, { retryAfterMs: HOURS_24 })).to.equal(HOURS_24);
    expect(delayAfter(1, { retryAfterMs: HOURS_24 + 1 })).to.equal(HOURS_24);
    expect(delayAfter(1, { retryAfterMs: Number.MAX_VALUE })).to.equal(HOURS_24);
  });

  it('waits at most a day, or the maximum if that is longer', () => {
    expect(longestPauseMs(SCHEDULE)).to.equal(HOURS_24);
    const maxDelayMs = 2 * HOURS_24;
    expect(longestPauseMs({ ...SCHEDULE, maxDelayMs })).to.equal(maxDelayMs);
  });

  it('does not let the receiver postpone the last attempt or stretch the attempts after the deadline', () => {
    expect(delayAfter(3, { agoMs: DAYS_3 - 5_000, retryAfterMs: HOURS_24 })).to.equal(5_000);
    expect(delayAfter(4, { agoMs: DAYS_3, retryAfterMs: HOURS_24 })).to.equal(900_000);
  });

  it('makes the last attempt three days after the first, and none later', () => {
    expect(delayAfter(300, { agoMs: DAYS_3 - 5_000 })).to.equal(5_000);
    expect(delayAfter(300, { agoMs: DAYS_3 - 5_000, retryAfterMs: 60_000 })).to.equal(5_000);
    expect(delayAfter(301, { agoMs: DAYS_3 })).to.equal(undefined);
  });

  it('makes at least 50 attempts even if the deadline passed after a clock change or downtime', () => {
    const agoMs = 30 * DAYS_3;
    expect([1, 2, 4, 49].map((attempt) => delayAfter(attempt, { agoMs }))).to.deep.equal([
      1_000, 2_000, 8_000, 900_000,
    ]);
    expect(delayAfter(4, { agoMs, retryAfterMs: 60_000 })).to.equal(60_000);
    expect([50, 51].map((attempt) => delayAfter(attempt, { agoMs }))).to.deep.equal([undefined, undefined]);
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
