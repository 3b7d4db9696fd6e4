import { expect } from 'chai';
import { createLogger } from '../../service/base/logger';
import { startRetention } from '../../service/composition/app';
import { owned } from '../helpers/resources';
import { VirtualTime } from '../helpers/virtual-time';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('the retention of what a service stored', () => {
  let time: VirtualTime;
  /** The times before which something ended that was to be removed. */
  let purges: number[];
  const retained = (days: number | undefined, onPurge: () => void = () => undefined) =>
    owned(
      'the retention',
      startRetention(
        { time, logger: createLogger({ level: 'silent', mask: (text) => text }) },
        'issued documents',
        {
          purge: async (before) => {
            purges.push(before);
            onPurge();
            return 1;
          },
        },
        days,
      ),
      'stop',
    );

  beforeEach(() => {
    [time, purges] = [new VirtualTime(100 * DAY_MS), []];
  });

  it('removes what is older than its days, at the start and as it ages, also after a failure', async () => {
    const retention = retained(30, () => {
      if (purges.length === 1) throw new Error('the database is away');
    });
    await time.pass(2.5 * HOUR_MS);
    await time.settled(retention.stop());
    await time.pass(DAY_MS);
    expect(purges).to.deep.equal([0, 1, 2].map((hours) => 70 * DAY_MS + hours * HOUR_MS));
  });

  it('removes nothing that ended, only the leftovers of a crash, when no days are set', async () => {
    const retention = retained(undefined);
    await time.pass(DAY_MS);
    await time.settled(retention.stop());
    expect(new Set(purges)).to.deep.equal(new Set([0]));
  });
});
