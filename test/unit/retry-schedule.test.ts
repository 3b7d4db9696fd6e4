import { expect } from 'chai';
import { DEFAULT_RETRY_SCHEDULE, nextAttemptAt } from '../../service/delivery/retry-schedule';

const NOW = 1_800_000_000_000;
const DAYS_3 = 3 * 24 * 3_600_000;

describe('retry schedule', () => {
  const delayAfter = (
    attempt: number,
    { random = 0, retryAfterMs = undefined as number | undefined, agoMs = 0 } = {},
  ): number | undefined => {
    const failed = { attempt, firstAttemptedAt: NOW - agoMs, now: NOW, retryAfterMs };
    const at = nextAttemptAt(failed, DEFAULT_RETRY_SCHEDULE, random);
    return at === undefined ? undefined : at - NOW;
  };

  it('doubles from one second up to fifteen minutes', () => {
    const delays = [1, 2, 3, 10, 11, 1000].map((attempt) => delayAfter(attempt));
    expect(delays).to.deep.equal([1_000, 2_000, 4_000, 512_000, 900_000, 900_000]);
  });

  it('takes off at most half at random', () => {
    const delays = [1, 2, 3, 10, 11, 1000].map((attempt) => delayAfter(attempt, { random: 1 }));
    expect(delays).to.deep.equal([500, 1_000, 2_000, 256_000, 450_000, 450_000]);
  });

  it('waits as long as the receiver asks, up to the maximum', () => {
    expect(delayAfter(1, { retryAfterMs: 120_000 })).to.equal(120_000);
    expect(delayAfter(1, { retryAfterMs: 10 })).to.equal(1_000);
    expect(delayAfter(1, { retryAfterMs: 86_400_000 })).to.equal(900_000);
  });

  it('makes the last attempt three days after the first, and none after it', () => {
    expect(delayAfter(300, { agoMs: DAYS_3 - 5_000 })).to.equal(5_000);
    expect(delayAfter(300, { agoMs: DAYS_3 - 5_000, retryAfterMs: 60_000 })).to.equal(5_000);
    expect(delayAfter(301, { agoMs: DAYS_3 })).to.equal(undefined);
  });
});
