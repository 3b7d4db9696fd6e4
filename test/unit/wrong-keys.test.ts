import { expect } from 'chai';
import type { Context } from 'koa';
import { RequestError, type TooOftenError } from '../../service/base/errors';
import { limitLogins } from '../../service/access/wallet-login';
import { createKeyRefusal, type RefuseKey } from '../../service/http/wrong-keys';

const WRONG = new RequestError('API_KEY_WRONG', 'The key is wrong.');

describe('wrong keys', () => {
  let time: number;
  let refuse: RefuseKey;
  const statusFor = (remoteAddress: string | undefined): number =>
    refuse({ req: { socket: { remoteAddress } } } as unknown as Context, WRONG) === WRONG ? 401 : 429;

  beforeEach(() => {
    time = 0;
    refuse = createKeyRefusal({ now: () => time });
  });

  it('of one address do not slow those of another', () => {
    for (const address of ['192.0.2.1', '192.0.2.2', '2001:db8::1', undefined])
      expect([statusFor(address), statusFor(address)]).to.deep.equal([401, 429]);
  });

  it('of all addresses of an IPv6 network of 64 bits count together', () => {
    const networks = [
      ['2001:db8::1', '2001:db8::2', '2001:db8::ffff:0:0:1', '2001:db8:0:0:1:2:3:4'],
      ['2001:db8:0:1::1', '2001:db8:0:1:f::', '2001:db8:0:1:2:3:4:5'],
      ['fe80::1%eth0', 'fe80::2%eth0'],
      ['::ffff:192.0.2.1'],
      ['::ffff:192.0.2.2'],
    ];
    for (const [first = '', ...others] of networks)
      expect([first, first, ...others].map(statusFor), first).to.deep.equal([
        401,
        429,
        ...others.map(() => 429),
      ]);
  });

  it('are forgotten ten minutes after the last one that counted', () => {
    expect(statusFor('a')).to.equal(401);
    time += 1_000;
    expect(statusFor('a')).to.equal(401);
    time += 1_999;
    expect(statusFor('a')).to.equal(429);
    time += 10 * 60_000 - 1_999;
    expect(statusFor('a')).to.equal(401);
    time += 1_000;
    expect(statusFor('a')).to.equal(401);
  });

  it('do not wait for a clock that was set back', () => {
    time = 3_600_000;
    expect([statusFor('a'), statusFor('a')]).to.deep.equal([401, 429]);
    time = 0;
    expect([statusFor('a'), statusFor('a')]).to.deep.equal([401, 429]);
  });

  it('are kept of a thousand addresses, the last ones', () => {
    const addresses = Array.from({ length: 1_000 }, (_, index) => `address ${index}`);
    for (const address of addresses) expect(statusFor(address)).to.equal(401);
    for (const address of addresses) expect(statusFor(address)).to.equal(429);
    expect(statusFor('one more')).to.equal(401);
    expect([statusFor('address 0'), statusFor('address 2')]).to.deep.equal([401, 429]);
  });
});

describe('log-ins', () => {
  it('of one name are as many within an hour as there may be, and those of another are not counted', () => {
    let now = 0;
    const limit = limitLogins({ now: () => now }, 'The account', 3);
    const retryAfterOf = (name: string): number | undefined => {
      try {
        limit(name);
        return undefined;
      } catch (error) {
        return (error as TooOftenError).retryAfterMs;
      }
    };
    for (let times = 0; times < 3; times++) expect(retryAfterOf('a')).to.equal(undefined);
    now += 1_000;
    expect(retryAfterOf('a')).to.equal(3_599_000);
    expect(retryAfterOf('b')).to.equal(undefined);
    now += 3_599_000;
    expect(retryAfterOf('a')).to.equal(undefined);
    // The clock is set back.
    now = -3_600_000;
    expect(retryAfterOf('a')).to.equal(undefined);
  });
});
