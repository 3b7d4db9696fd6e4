import { expect } from 'chai';
import { CHAIN_EVENT_TYPES } from '../../client/events';
import type { CloudEvent } from '../../service/events/cloud-event';
import { compileSelection, type Filter, type Selection } from '../../service/events/select-events';
import { SelectionIndex } from '../../service/events/selection-index';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

const SOURCES = ['urn:service:1:0xaa', 'urn:service:1:0xbb'];
const TYPES = CHAIN_EVENT_TYPES.slice(0, 4);
/** Also the ids of tokens. */
const SUBJECTS = ['0', '7', '255'];
/** One in upper case: a subscription may name it in any case. */
const PARTIES = [1, 2, 3].map((digit) => `0x${String(digit).repeat(38)}aB`);
const VALUES = { source: SOURCES, type: TYPES, subject: SUBJECTS, specversion: ['1.0'], colour: ['red'] };

function randomEvent(random: SeededRandom): CloudEvent {
  const subject = random.pick(SUBJECTS);
  return {
    specversion: '1.0',
    id: random.hex(2),
    source: random.pick(SOURCES),
    type: random.pick(TYPES),
    datacontenttype: 'application/json',
    time: '2026-11-21T08:15:37.000Z',
    subject,
    data: {
      chainKey: 'hardhat',
      chainId: 1,
      registryAddress: '0xaa',
      tokenId: subject,
      ...(random.chance(0.8) && { tokenIdHex: BigInt(subject).toString(16).padStart(64, '0') }),
      blockNumber: 8,
      transactionHash: '0x2a',
      logIndex: 0,
      payload: {
        ...(random.chance(0.7) && { holder: random.pick(PARTIES).toLowerCase() }),
        ...(random.chance(0.3) && { owner: random.pick(PARTIES).toLowerCase(), isMinting: true }),
        remark: random.pick(PARTIES).toLowerCase(),
      },
    },
  };
}

function some<T>(random: SeededRandom, make: () => T): T[] {
  return Array.from({ length: 1 + random.below(3) }, make);
}

function randomFilter(random: SeededRandom, depth = 1): Filter {
  const name = random.pick(Object.keys(VALUES) as (keyof typeof VALUES)[]);
  const value = random.pick(VALUES[name]);
  const inner = (): Filter => randomFilter(random, depth + 1);
  const kinds: (() => Filter)[] = [
    () => ({ exact: { [name]: value, ...(random.chance(0.2) && { subject: random.pick(SUBJECTS) }) } }),
    () => ({ prefix: { [name]: value.slice(0, -1) } }),
    () => ({ suffix: { [name]: value.slice(1) } }),
    () => ({ tokens: some(random, () => random.pick([...SUBJECTS, '0'.repeat(62) + 'ff'])) }),
    () => ({ parties: some(random, () => random.pick(PARTIES)) }),
    () => ({ all: some(random, inner) }),
    () => ({ any: some(random, inner) }),
    () => ({ not: inner() }),
  ];
  return random.pick(depth < 4 ? kinds : kinds.slice(0, 5))();
}

function randomSelection(random: SeededRandom): Selection {
  return {
    ...(random.chance(0.3) && { source: random.pick(SOURCES) }),
    ...(random.chance(0.4) && { types: some(random, () => random.pick(TYPES)) }),
    ...(random.chance(0.8) && { filters: some(random, () => randomFilter(random)) }),
  };
}

describe('the index of selections', () => {
  it('finds for 10,000 events what comparing each with 10,000 selections finds, also after changes', () => {
    let [found, selected] = [0, 0];
    for (let seed = 1; seed <= 100; seed++) {
      const random = seededRandom(seed);
      const index = new SelectionIndex();
      const all = new Map(Array.from({ length: 100 }, (_, id) => [id, randomSelection(random)]));
      all.forEach((selection, id) => index.set(id, selection));
      for (let event = 0; event < 100; event++) {
        const id = random.below(100);
        all.set(id, randomSelection(random));
        index.set(id, all.get(id) ?? {});
        if (random.chance(0.2)) {
          all.delete(id);
          index.delete(id);
        }
        const cloudEvent = randomEvent(random);
        const wants = (one: number): boolean => compileSelection(all.get(one) ?? {})(cloudEvent);
        const candidates = [...index.candidates(cloudEvent)];
        const matching = candidates.filter(wants).sort((one, other) => one - other);
        expect(matching, `seed ${seed}`).to.deep.equal([...all.keys()].filter(wants).sort((a, b) => a - b));
        found += candidates.length;
        selected += matching.length;
      }
    }
    // The test compares something, and the index leaves most of the others out.
    expect(selected).to.be.above(100_000);
    expect(found).to.be.below(700_000);
  });

  const FILTERS: [string, Selection, boolean][] = [
    ['parties', { filters: [{ parties: [PARTIES[0] ?? ''] }] }, true],
    [
      'parties of one branch of all, beside a prefix',
      { filters: [{ all: [{ prefix: { type: 'com' } }, { parties: PARTIES }] }] },
      true,
    ],
    [
      'tokens under two levels of any',
      { filters: [{ any: [{ any: [{ tokens: ['9'] }] }, { tokens: ['8'] }] }] },
      true,
    ],
    ['an attribute that no event has', { filters: [{ exact: { colour: 'red' } }] }, true],
    [
      'any with a branch of not',
      { filters: [{ any: [{ tokens: ['9'] }, { not: { tokens: ['9'] } }] }] },
      false,
    ],
    ['a prefix alone', { filters: [{ prefix: { type: 'com.other' } }] }, false],
    ['nothing', {}, false],
  ];
  for (const [name, selection, isIndexed] of FILTERS)
    it(`${isIndexed ? 'leaves out' : 'finds for every event'} a selection by ${name}`, () => {
      const index = new SelectionIndex();
      index.set(1, selection);
      const event = randomEvent(seededRandom(1));
      event.data.payload = { holder: `0x${'99'.repeat(20)}` };
      expect([...index.candidates(event)]).to.deep.equal(isIndexed ? [] : [1]);
    });

  it('finds a selection by its parties, and not by a type that many events have', () => {
    const index = new SelectionIndex();
    index.set(1, {
      types: TYPES,
      source: SOURCES[0] ?? '',
      filters: [{ parties: [`0x${'77'.repeat(20)}`] }],
    });
    expect([...index.candidates(randomEvent(seededRandom(2)))]).to.deep.equal([]);
  });
});
