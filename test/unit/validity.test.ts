import { expect } from 'chai';
import { validUntilOf } from '../../service/issuance/credential';

describe('validity of a credential', () => {
  const cases = [
    [
      '2026-11-21T04:05:06.789Z',
      '2027-02-21T04:05:06.789Z',
      'ends three calendar months later at the same time of day',
    ],
    ['2026-11-30T23:59:59.999Z', '2027-02-28T23:59:59.999Z', 'ends on the last day of a shorter month'],
    ['2027-11-30T12:00:00.000Z', '2028-02-29T12:00:00.000Z', 'ends on 29 February in a leap year'],
    ['2026-12-31T00:00:00.000Z', '2027-03-31T00:00:00.000Z', 'crosses the turn of the year'],
    [
      '2026-03-31T00:30:00.000Z',
      '2026-06-30T00:30:00.000Z',
      'is counted in UTC, regardless of the local time zone',
    ],
  ] as const;
  for (const [from, until, outcome] of cases) {
    it(outcome, () => expect(validUntilOf(new Date(from)).toISOString()).to.equal(until));
  }
});
