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
const listed = (depth: number, name = 'any'): object =>
  depth === 1 ? EXACT : { [name]: [listed(depth - 1, name === 'any' ? 'all' : 'any')] };
const config = (members: object): object => ({ config: members });
const sink = (length: number): object => ({ sink: 'https://a.example/'.padEnd(length, 'x') });

type Having = (number: number) => object;

const text = (length: number): string => 'x'.repeat(length);

/** The refusal of one more than this number, and the members that have a number of it. */
const MOST: [refusal: string, most: number, having: Having][] = [
  ['/sink has more than 2048 characters.', 2_048, sink],
  ['/protocolsettings/headers has more than 20 headers.', 20, (n) => withHeaders(headers(n))],
  ['/protocolsettings/headers has a name of more than 256 ', 256, (n) => withHeaders({ [text(n)]: 'a' })],
  ['/protocolsettings/headers/x-key has more than 4096 ', 4_096, (n) => withHeaders({ 'x-key': text(n) })],
  ['/filters/0/not/not/not/not/not is nested more than 5 deep.', 5, (n) => filtered(nested(n))],
  ['/filters/0/any/0/all/0/any/0/all/0/any/0 is nested more than 5', 5, (n) => filtered(listed(n))],
  ['/filters has more than 200 filters in all.', 200, (n) => filtered(...times(n, EXACT))],
  [
    '/filters has more than 200 filters in all.',
    200,
    (n) => filtered({ any: times(99, EXACT) }, { all: times(n - 101, EXACT) }),
  ],
  ['/filters/0/tokens has more than 1000 entries.', 1_000, (n) => filtered({ tokens: times(n, '1') })],
  ['/filters/0/parties has more than 1000 entries.', 1_000, (n) => filtered({ parties: times(n, ADDRESS) })],
  ['/filters/0/exact/type has more than 1024 ', 1_024, (n) => filtered({ exact: { type: text(n) } })],
  ['/filters/0/exact has a name of more than 1024 ', 1_024, (n) => filtered({ exact: { [text(n)]: 'a' } })],
  ['/filters/0/tokens/0 has more than 1024 ', 1_024, (n) => filtered({ tokens: ['1'.padStart(n, '0')] })],
  ['/config/startFrom must be `now`, ', Number.MAX_SAFE_INTEGER, (startFrom) => config({ startFrom })],
];

const retry =
  (member: string): Having =>
  (value) =>
    config({ retry: { [member]: value } });

const RANGES: [member: string, unit: string, least: number, most: number, having: Having][] = [
  ['timeoutMs', 'milliseconds', 1, 120_000, (timeoutMs) => config({ timeoutMs })],
  ['maxConcurrentDeliveries', 'deliveries', 1, 1_000, (n) => config({ maxConcurrentDeliveries: n })],
  ['retry/initialDelayMs', 'milliseconds', 1, 2_147_483_647, retry('initialDelayMs')],
  ['retry/maxDelayMs', 'milliseconds', 1, 2_147_483_647, retry('maxDelayMs')],
  ['retry/giveUpAfterMs', 'milliseconds', 0, Number.MAX_SAFE_INTEGER, retry('giveUpAfterMs')],
];

describe('a subscription', () => {
  for (const [index, [refusal, most, having]] of MOST.entries())
    it(`may have no more than this (${index}): ${refusal}`, () => {
      expect(() => subscriptionWith(having(most))).not.to.throw();
      expect(refusalOf(having(most + 1))).to.have.string(refusal);
    });

  for (const [member, unit, least, most, having] of RANGES)
    it(`has from ${least} to ${most} ${unit} as ${member}`, () => {
      for (const value of [least, most]) expect(() => subscriptionWith(having(value))).not.to.throw();
      for (const value of [least - 1, most + 1])
        expect(refusalOf(having(value))).to.have.string(
          `/config/${member} must be a whole number of ${unit} from ${least} to ${most}.`,
        );
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
