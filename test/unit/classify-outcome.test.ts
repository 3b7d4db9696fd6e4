import { expect } from 'chai';
import { classifyOutcome } from '../../service/delivery/attempt-delivery';

const NOW = Date.parse('2026-11-21T00:00:00Z');

describe('outcome of a delivery attempt', () => {
  const statusOnly = (status: number) => classifyOutcome({ status, retryAfter: undefined }, NOW);

  it('is a success for 2xx only', () => {
    for (const status of [200, 201, 204, 299])
      expect(statusOnly(status).delivered, String(status)).to.equal(true);
    for (const status of [100, 199, 300, 301, 304, 307, 400, 401, 404, 410, 429, 500, 503]) {
      expect(statusOnly(status).delivered, String(status)).to.equal(false);
    }
  });

  it('has the failure when there was no answer', () => {
    const outcome = classifyOutcome({ status: undefined, failure: 'connect ECONNREFUSED' }, NOW);
    expect(outcome).to.deep.equal({
      delivered: false,
      status: undefined,
      error: 'connect ECONNREFUSED',
      retryAfterMs: undefined,
      gone: false,
    });
  });

  it('tells by 410 alone that the receiver wants nothing more', () => {
    expect(statusOnly(410)).to.deep.include({ error: 'answered 410', gone: true });
    for (const status of [301, 400, 404, 429, 503]) expect(statusOnly(status)).to.include({ gone: false });
  });

  for (const [header, ms] of [
    ['7', 7_000],
    ['Sat, 21 Nov 2026 00:01:00 GMT', 60_000],
    ['Fri, 20 Nov 2026 00:00:00 GMT', undefined],
    ['soon', undefined],
    ['-3', undefined],
  ] as const) {
    it(`reads Retry-After: ${header} as ${ms === undefined ? 'nothing' : `${ms} ms`}`, () => {
      const outcome = classifyOutcome({ status: 503, retryAfter: header }, NOW);
      expect(outcome).to.include({ delivered: false, status: 503, retryAfterMs: ms });
    });
  }
});
