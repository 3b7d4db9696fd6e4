import { expect } from 'chai';
import { retryAfterMsOf } from '../../service/base/time';
import { failureOf } from '../../service/delivery/attempt-delivery';

const NOW = Date.parse('2026-11-21T00:00:00Z');

describe('outcome of a delivery attempt', () => {
  it('is a success for 2xx only', () => {
    for (const status of [200, 201, 204, 299])
      expect(failureOf({ status }), String(status)).to.equal(undefined);
    for (const status of [100, 199, 400, 401, 404, 410, 429, 500, 503])
      expect(failureOf({ status })).to.equal(`answered ${status}`);
    for (const status of [300, 301, 304, 307])
      expect(failureOf({ status })).to.equal(`redirected (${status})`);
  });

  it('has the failure when there was no answer', () => {
    const failure = 'connect ECONNREFUSED';
    expect(failureOf({ status: undefined, failure })).to.equal(failure);
  });

  for (const [header, ms] of [
    ['7', 7_000],
    ['Sat, 21 Nov 2026 00:01:00 GMT', 60_000],
    ['Fri, 20 Nov 2026 00:00:00 GMT', undefined],
    ['soon', undefined],
    ['-3', undefined],
  ] as const)
    it(`reads Retry-After: ${header} as ${ms === undefined ? 'nothing' : `${ms} ms`}`, () => {
      expect(retryAfterMsOf(header, NOW)).to.equal(ms);
    });
});
