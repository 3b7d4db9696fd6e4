import { expect } from 'chai';
import type { CloudEvent } from '../../service/events/cloud-event';
import { compileSelection, type Filter, type Selection } from '../../service/events/select-events';
import { randomEvent, randomFilter, randomSelection } from '../helpers/random-filters';
import { seededRandom } from '../helpers/seeded-random';

const REGISTRY = '0xd8058efe0198ae9dd7d563e1b4938dcbc86a1f81';
const HOLDER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const HEX = '00000000000000000000000000000000000000000000000000000000000000ff';

const EVENT: CloudEvent = {
  specversion: '1.0',
  id: 'd945789d-9919-55b6-9321-59112e4e33b4',
  source: `urn:service:31337:${REGISTRY}`,
  type: 'com.service.etr.holder_transfer',
  datacontenttype: 'application/json',
  time: '2026-11-21T08:15:37.000Z',
  subject: '255',
  data: {
    chainKey: 'hardhat',
    chainId: 31337,
    registryAddress: REGISTRY,
    tokenId: '255',
    tokenIdHex: HEX,
    blockNumber: 8,
    transactionHash: `0x${'2a'.repeat(32)}`,
    logIndex: 0,
    payload: {
      fromHolder: HOLDER.toLowerCase(),
      toHolder: `0x${'ab'.repeat(20)}`,
      remark: `0x${'cd'.repeat(20)}`,
    },
  },
};

const REGISTRY_EVENT: CloudEvent = {
  ...EVENT,
  type: 'com.service.etr.registry_paused',
  subject: '0',
  data: { ...EVENT.data, tokenId: '0', payload: {} },
};
delete REGISTRY_EVENT.data.tokenIdHex;

const matches = (filter: Filter, event = EVENT): boolean => compileSelection({ filters: [filter] })(event);

describe('selection of a subscription', () => {
  it('compares attributes with their case', () => {
    for (const filter of [
      { exact: { type: EVENT.type.toUpperCase() } },
      { prefix: { type: 'Com.service' } },
      { suffix: { type: '_Transfer' } },
    ])
      expect(matches(filter)).to.equal(false);
  });

  for (const name of ['extension', 'data', 'Type', 'toString', '__proto__'])
    it(`takes a filter on ${name}, which no event has as an attribute, as false`, () => {
      const values = JSON.parse(`{"${name}": "x"}`) as Record<string, string>;
      for (const dialect of ['exact', 'prefix', 'suffix'])
        expect(matches({ [dialect]: values } as unknown as Filter)).to.equal(false);
      expect(matches({ not: { exact: values } })).to.equal(true);
    });

  describe('tokens', () => {
    for (const id of ['255', '0255', '0xff', '0xFF', HEX, HEX.toUpperCase(), `0x${HEX}`])
      it(`has the token written as ${id}`, () => expect(matches({ tokens: ['7', id] })).to.equal(true));

    it('does not have another token', () => expect(matches({ tokens: ['25', '2550'] })).to.equal(false));

    it('never has an event of the registry, whose token id 0 stands for none', () => {
      expect(matches({ tokens: ['0'] }, REGISTRY_EVENT)).to.equal(false);
      const ofTokenZero = { ...EVENT, data: { ...EVENT.data, tokenId: '0', tokenIdHex: '0'.repeat(64) } };
      expect(matches({ tokens: ['0'] }, ofTokenZero)).to.equal(true);
    });
  });

  describe('parties', () => {
    it('has an event whose payload has one of the addresses, in any case', () => {
      expect(matches({ parties: [`0x${'11'.repeat(20)}`, HOLDER] })).to.equal(true);
      const payload = { holder: HOLDER };
      expect(
        matches({ parties: [HOLDER.toLowerCase()] }, { ...EVENT, data: { ...EVENT.data, payload } }),
      ).to.equal(true);
    });

    it('does not have an event without them', () => {
      expect(matches({ parties: [`0x${'11'.repeat(20)}`] })).to.equal(false);
      expect(matches({ parties: [HOLDER] }, REGISTRY_EVENT)).to.equal(false);
    });

    it('has an address that is nested in the payload', () => {
      const payload = {
        owners: [{ account: HOLDER.toLowerCase() }],
        none: null,
      } as unknown as typeof EVENT.data.payload;
      expect(matches({ parties: [HOLDER] }, { ...EVENT, data: { ...EVENT.data, payload } })).to.equal(true);
    });

    it('does not take the registry, or a remark of 20 bytes, for a party', () => {
      expect(matches({ parties: [REGISTRY] })).to.equal(false);
      expect(matches({ parties: [`0x${'cd'.repeat(20)}`] })).to.equal(false);
    });
  });

  it('agrees with a naive evaluator on random filters and events', () => {
    const answers = { true: 0, false: 0 };
    for (let seed = 1; seed <= 300; seed++) {
      const random = seededRandom(seed);
      const filters = Array.from({ length: random.below(3) }, () => randomFilter(random, 4));
      const selection = { ...randomSelection(random), filters };
      const selected = compileSelection(selection);
      for (let round = 0; round < 5; round++) {
        const event = randomEvent(random);
        const expected = naively(selection, event);
        expect(selected(event), `seed ${seed}: ${JSON.stringify({ selection, event })}`).to.equal(expected);
        answers[`${expected}`]++;
      }
    }
    expect(answers.true).to.be.greaterThan(200);
    expect(answers.false).to.be.greaterThan(200);
  });
});

/** The rules of docs/subscriptions.md, one by one, without any preparation. */
function naively({ source, types, filters = [] }: Selection, event: CloudEvent): boolean {
  if (source !== undefined && event.source !== source) return false;
  if (types !== undefined && !types.some((type) => type === event.type)) return false;
  return filters.every((filter) => isTrue(filter, event));
}

function isTrue(filter: Filter, event: CloudEvent): boolean {
  const { data, ...attributes } = event;
  const attribute = (name: string): unknown => new Map<string, unknown>(Object.entries(attributes)).get(name);
  const each = (
    values: Readonly<Record<string, string>>,
    test: (has: string, wanted: string) => boolean,
  ): boolean =>
    Object.entries(values).every(([name, wanted]) => {
      const has = attribute(name);
      return typeof has === 'string' && test(has, wanted);
    });
  if ('all' in filter) return filter.all.every((inner) => isTrue(inner, event));
  if ('any' in filter) return filter.any.some((inner) => isTrue(inner, event));
  if ('not' in filter) return !isTrue(filter.not, event);
  if ('exact' in filter) return each(filter.exact, (has, wanted) => has === wanted);
  if ('prefix' in filter) return each(filter.prefix, (has, wanted) => has.indexOf(wanted) === 0);
  if ('suffix' in filter) return each(filter.suffix, (has, wanted) => has.slice(-wanted.length) === wanted);
  if ('parties' in filter)
    return filter.parties.some((address) => Object.values(data.payload).includes(address.toLowerCase()));
  return filter.tokens.some((id) => {
    const hexadecimal = id.length === 64 ? `0x${id}` : id;
    return data.tokenIdHex !== undefined && BigInt(hexadecimal) === BigInt(`0x${data.tokenIdHex}`);
  });
}
