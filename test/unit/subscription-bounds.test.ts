import { expect } from 'chai';
import { refusalOf, refusalOfPut, subscriptionWith } from '../helpers/subscription-body';

const EXACT = { exact: { type: 'a' } };
const ADDRESS = `0x${'ab'.repeat(20)}`;

const times = <T>(count: number, value: T): T[] => Array<T>(count).fill(value);
const headers = (count: number): object =>
  Object.fromEntries(times(count, 'value').map((value, index) => [`x-${index}`, value]));
const withHeaders = (given: object): object => ({ protocolsettings: { headers: given } });
const filtered = (...filters: unknown[]): object => ({ filters });
const nested = (depth: number): object => (depth === 1 ? EXACT : { not: nested(depth - 1) });
const config = (members: object): object => ({ config: members });
const sink = (length: number): object => ({ sink: 'https://a.example/'.padEnd(length, 'x') });

/** The largest that is accepted, the smallest that is refused, and the refusal. */
const BOUNDS: Record<string, [largest: object, tooLarge: object, message: string]> = {
  'a sink of 2,048 characters': [sink(2_048), sink(2_049), '/sink has more than 2048 characters.'],
  '20 headers': [
    withHeaders(headers(20)),
    withHeaders(headers(21)),
    '/protocolsettings/headers has more than 20 headers.',
  ],
  'a header name of 256 characters': [
    withHeaders({ ['x'.repeat(256)]: 'a' }),
    withHeaders({ ['x'.repeat(257)]: 'a' }),
    '/protocolsettings/headers has a name of more than 256 characters: header 1.',
  ],
  'a header value of 4,096 characters': [
    withHeaders({ 'x-key': 'x'.repeat(4_096) }),
    withHeaders({ 'x-key': 'x'.repeat(4_097) }),
    '/protocolsettings/headers/x-key has more than 4096 characters.',
  ],
  'filters nested 5 deep': [
    filtered(nested(5)),
    filtered(nested(6)),
    '/filters/0/not/not/not/not/not is nested more than 5 deep.',
  ],
  'lists of filters nested 5 deep': [
    filtered({ any: [{ all: [{ any: [{ all: [EXACT] }] }] }] }),
    filtered({ any: [{ all: [{ any: [{ all: [{ any: [EXACT] }] }] }] }] }),
    '/filters/0/any/0/all/0/any/0/all/0/any/0 is nested more than 5 deep.',
  ],
  '200 filters': [
    filtered(...times(200, EXACT)),
    filtered(...times(201, EXACT)),
    '/filters has more than 200 filters in all.',
  ],
  '200 filters, those in other filters included': [
    filtered({ any: times(99, EXACT) }, { all: times(99, EXACT) }),
    filtered({ any: times(99, EXACT) }, { all: times(100, EXACT) }),
    '/filters has more than 200 filters in all.',
  ],
  '1,000 tokens': [
    filtered({ tokens: times(1_000, '1') }),
    filtered({ tokens: times(1_001, '1') }),
    '/filters/0/tokens has more than 1000 entries.',
  ],
  '1,000 parties': [
    filtered({ parties: times(1_000, ADDRESS) }),
    filtered({ parties: times(1_001, ADDRESS) }),
    '/filters/0/parties has more than 1000 entries.',
  ],
  'an attribute value of 1,024 characters': [
    filtered({ exact: { type: 'x'.repeat(1_024) } }),
    filtered({ exact: { type: 'x'.repeat(1_025) } }),
    '/filters/0/exact/type has more than 1024 characters.',
  ],
  'an attribute name of 1,024 characters': [
    filtered({ exact: { ['x'.repeat(1_024)]: 'a' } }),
    filtered({ exact: { ['x'.repeat(1_025)]: 'a' } }),
    '/filters/0/exact has a name of more than 1024 characters.',
  ],
  'a token id of 1,024 characters': [
    filtered({ tokens: ['1'.padStart(1_024, '0')] }),
    filtered({ tokens: ['1'.padStart(1_025, '0')] }),
    '/filters/0/tokens/0 has more than 1024 characters.',
  ],
  'a time-out of 120 s': [
    config({ timeoutMs: 120_000 }),
    config({ timeoutMs: 120_001 }),
    '/config/timeoutMs must be a whole number of milliseconds from 1 to 120000.',
  ],
  '1,000 deliveries at once': [
    config({ maxConcurrentDeliveries: 1_000 }),
    config({ maxConcurrentDeliveries: 1_001 }),
    '/config/maxConcurrentDeliveries must be a whole number of deliveries from 1 to 1000.',
  ],
  'a first delay of 24.8 days': [
    config({ retry: { initialDelayMs: 2_147_483_647 } }),
    config({ retry: { initialDelayMs: 2_147_483_648 } }),
    '/config/retry/initialDelayMs must be a whole number of milliseconds from 1 to 2147483647.',
  ],
  'a longest delay of 24.8 days': [
    config({ retry: { maxDelayMs: 2_147_483_647 } }),
    config({ retry: { maxDelayMs: 2_147_483_648 } }),
    '/config/retry/maxDelayMs must be a whole number of milliseconds from 1 to 2147483647.',
  ],
  'a block number that JavaScript keeps exactly': [
    config({ startFrom: Number.MAX_SAFE_INTEGER }),
    config({ startFrom: Number.MAX_SAFE_INTEGER + 1 }),
    '/config/startFrom must be `now`, `beginning` or the number of a block.',
  ],
  'a number that JavaScript keeps exactly as the time to give up': [
    config({ retry: { giveUpAfterMs: Number.MAX_SAFE_INTEGER } }),
    config({ retry: { giveUpAfterMs: Number.MAX_SAFE_INTEGER + 1 } }),
    '/config/retry/giveUpAfterMs must be a whole number of milliseconds from 0 to 9007199254740991.',
  ],
};

describe('a subscription', () => {
  for (const [name, [largest, tooLarge, message]] of Object.entries(BOUNDS))
    it(`may have ${name} and no more`, () => {
      expect(() => subscriptionWith(largest)).not.to.throw();
      expect(refusalOf(tooLarge)).to.have.string(message);
    });

  for (const [member, least] of Object.entries({ timeoutMs: 1, maxConcurrentDeliveries: 1 }))
    it(`has at least ${least} as ${member}`, () => {
      expect(refusalOf(config({ [member]: least - 1 }))).to.match(new RegExp(`^/config/${member} must be`));
    });

  for (const [member, least] of Object.entries({ initialDelayMs: 1, maxDelayMs: 1, giveUpAfterMs: 0 }))
    it(`has at least ${least} as ${member}`, () => {
      const message = refusalOf(config({ retry: { [member]: least - 1 } }));
      expect(message).to.match(new RegExp(`^/config/retry/${member} must be`));
    });

  it('may not have more than 50 entries of types', () => {
    expect(refusalOf({ types: times(51, 'a') })).to.have.string('/types has more than 50 entries.');
  });

  it('may not grow beyond 20 headers by replacements', () => {
    const stored = subscriptionWith(withHeaders(headers(20)));
    const message = '/protocolsettings/headers has more than 20 headers.';
    expect(refusalOfPut(stored, withHeaders({ 'x-new': 'a' }))).to.have.string(message);
    expect(() => refusalOfPut(stored, withHeaders({ 'x-new': 'a', 'x-0': null }))).to.throw(
      'it was accepted',
    );
  });

  it('is refused at once when its filters are nested as deep as a body allows', () => {
    const body = `${'{"not":'.repeat(8_000)}{"exact":{"type":"a"}}${'}'.repeat(8_000)}`;
    expect(refusalOf(filtered(JSON.parse(body)))).to.have.string('is nested more than 5 deep.');
  });

  it('is refused with a short message when a name is as long as a body', () => {
    expect(refusalOf({ ['x'.repeat(60_000)]: 1 }))
      .to.have.property('length')
      .lessThan(500);
  });
});
