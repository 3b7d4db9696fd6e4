import { expect } from 'chai';
import { tokenIdOf, validUntilOf } from '../../service/issuance/credential';
import { tokenIdAsUint256 } from '../helpers/token-id';

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

describe('token id', () => {
  // Independent result: printf 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001' | sha256sum
  const id = 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001';
  const sha256 = 'f3952212022878a318b6a94906e40b7bdd463e58254886fc35b7dbba11923073';

  it('is the lower-case hex SHA-256 of the credential id', () => {
    expect(tokenIdOf(id)).to.equal(sha256);
  });

  it('is the same number on chain', () => {
    expect(tokenIdAsUint256(sha256).toString(16).padStart(64, '0')).to.equal(sha256);
  });
});
