import { expect } from 'chai';
import { createLogger } from '../../service/base/logger';
import { startRetention } from '../../service/composition/app';
import { eventually } from '../helpers/eventually';
import { owned } from '../helpers/resources';

const DAY_MS = 86_400_000;

describe('the retention of what a service stored', () => {
  let now: number;
  /** The times before which something ended that was to be removed. */
  let purges: number[];
  const retained = (days: number | undefined, onPurge: () => void = () => undefined) =>
    owned(
      'the retention',
      startRetention({
        what: 'issued documents',
        purge: async (before) => {
          purges.push(before);
          onPurge();
          return 1;
        },
        days,
        clock: { now: () => now },
        logger: createLogger({ level: 'silent', mask: (text) => text }),
        everyMs: 1,
      }),
      'stop',
    );

  beforeEach(() => {
    [now, purges] = [100 * DAY_MS, []];
  });

  it('removes what is older than its days, at the start and as it ages, also after a failure', async () => {
    const retention = retained(30, () => {
      now += DAY_MS;
      if (purges.length === 1) throw new Error('the database is away');
    });
    await eventually('it goes on', () => purges.length >= 3);
    await retention.stop();
    expect(purges.slice(0, 3)).to.deep.equal([70, 71, 72].map((days) => days * DAY_MS));
    const { length } = purges;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(purges, 'after the end').to.have.length(length);
  });

  it('removes nothing that ended, only the leftovers of a crash, when no days are set', async () => {
    const retention = retained(undefined);
    await eventually('it looks', () => purges.length > 0);
    await retention.stop();
    expect(new Set(purges)).to.deep.equal(new Set([0]));
  });
});
