import { expect } from 'chai';
import { DEFAULT_RETRY_SCHEDULE, retryDelayMs } from '../../service/delivery/retry-schedule';

describe('retry schedule', () => {
  const delays = (random: number): number[] =>
    [1, 2, 3, 10, 11, 1000].map((attempt) =>
      retryDelayMs(attempt, DEFAULT_RETRY_SCHEDULE, undefined, random),
    );

  it('doubles from one second up to fifteen minutes', () => {
    expect(delays(0)).to.deep.equal([1_000, 2_000, 4_000, 512_000, 900_000, 900_000]);
  });

  it('takes off at most half at random', () => {
    expect(delays(1)).to.deep.equal([500, 1_000, 2_000, 256_000, 450_000, 450_000]);
  });

  it('waits as long as the receiver asks, up to the maximum', () => {
    expect(retryDelayMs(1, DEFAULT_RETRY_SCHEDULE, 120_000, 0)).to.equal(120_000);
    expect(retryDelayMs(1, DEFAULT_RETRY_SCHEDULE, 10, 0)).to.equal(1_000);
    expect(retryDelayMs(1, DEFAULT_RETRY_SCHEDULE, 86_400_000, 0)).to.equal(900_000);
  });
});
