import { expect } from 'chai';
import { AbiCoder, type EventFragment, type Interface, toBeHex, zeroPadValue } from 'ethers';
import { argumentsOf } from '../../service/registry/decode-log';
import {
  escrowInterface,
  factoryInterface,
  registryInterface,
} from '../../service/registry/registry-contracts';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

const SEEDS = 15;
const COUNTED: [Interface, string[]][] = [
  [registryInterface, ['Transfer', 'PauseWithRemark', 'UnpauseWithRemark']],
  [factoryInterface, ['TitleEscrowCreated']],
  [
    escrowInterface,
    [
      'TokenReceived',
      'Nomination',
      'BeneficiaryTransfer',
      'HolderTransfer',
      'ReturnToIssuer',
      'Shred',
      'RejectTransferBeneficiary',
      'RejectTransferHolder',
      'RejectTransferOwners',
    ],
  ],
];

interface Log {
  topics: string[];
  data: string;
}

const randomValue = (random: SeededRandom, type: string): unknown => {
  if (type === 'address') return random.hex(20);
  if (type === 'uint256') return BigInt(random.chance(0.2) ? '0x0' : random.hex(1 + random.below(32)));
  return type === 'bool' ? random.chance(0.5) : random.hex(random.below(130));
};

/** A log of the event as a contract emits it. */
const emitted = ({ inputs, topicHash }: EventFragment, random: SeededRandom): Log => {
  const values = inputs.map(({ type, indexed }) => ({
    type,
    indexed,
    value: randomValue(random, type),
  }));
  const encode = (some: typeof values): string =>
    AbiCoder.defaultAbiCoder().encode(
      some.map(({ type }) => type),
      some.map(({ value }) => value),
    );
  const inTopics = values.filter(({ indexed }) => indexed);
  return {
    topics: [topicHash, ...inTopics.map((one) => encode([one]))],
    data: encode(values.filter(({ indexed }) => !indexed)),
  };
};

const word = (value: bigint | number): string => zeroPadValue(toBeHex(value), 32).slice(2);

/** The logs that a forger may emit: any topics of 32 bytes, and any data. */
const MUTATIONS: ((log: Log, random: SeededRandom) => Log)[] = [
  ({ topics, data }, random) => ({ topics: topics.slice(0, random.below(topics.length + 1)), data }),
  ({ topics, data }, random) => ({ topics: [...topics, random.hex(32)], data }),
  ({ topics, data }, random) => ({ topics: topics.map((one, at) => (at ? random.hex(32) : one)), data }),
  ({ topics, data }, random) => ({ topics, data: data.slice(0, 2 + 2 * random.below(data.length / 2)) }),
  ({ topics, data }, random) => ({ topics, data: data + random.hex(random.below(70)).slice(2) }),
  ({ topics, data }, random) => {
    const at = 2 + 2 * random.below(Math.max(data.length / 2 - 1, 1));
    return { topics, data: data.slice(0, at) + random.hex(1).slice(2) + data.slice(at + 2) };
  },
  ({ topics, data }, random) => {
    const words = data.slice(2).match(/.{64}/g) ?? [];
    const odd = [0, 1, 31, 32, 64, 96, data.length / 2, 2 ** 31, 2n ** 53n, 2n ** 64n, 2n ** 256n - 1n];
    if (words.length > 0) words[random.below(words.length)] = word(random.pick(odd));
    return { topics, data: `0x${words.join('')}` };
  },
  ({ topics, data }) => ({ topics: topics.map((one) => one.toUpperCase().replace('X', 'x')), data }),
  ({ topics, data }) => ({ topics, data: data.toUpperCase().replace('X', 'x') }),
  ({ topics }, random) => ({ topics, data: random.hex(32 * random.below(8)) }),
];

/** As the service decoded logs before: with ethers, and in lower case. */
const decodedByEthers = (contract: Interface, fragment: EventFragment, { topics, data }: Log): unknown => {
  try {
    const args = contract.decodeEventLog(fragment, data, [fragment.topicHash, ...topics.slice(1)]).toObject();
    return Object.fromEntries(
      Object.entries(args).map(([name, value]: [string, unknown]) => [
        name,
        typeof value === 'string' ? value.toLowerCase() : value,
      ]),
    );
  } catch {
    return undefined;
  }
};

describe('the arguments of an event', () => {
  for (const [contract, names] of COUNTED)
    for (const name of names)
      it(`${name} are those that ethers decodes, also of forged logs`, () => {
        const fragment = contract.getEvent(name);
        if (fragment === null) throw new Error('no such event');
        let refused = 0;
        for (let seed = 0; seed < SEEDS; seed++) {
          const random = seededRandom(seed);
          const log = emitted(fragment, random);
          const whole = argumentsOf(fragment, log.topics, log.data);
          expect(whole).to.deep.equal(decodedByEthers(contract, fragment, log));
          expect(Object.keys(whole ?? {})).to.have.length(fragment.inputs.length);
          for (const mutate of MUTATIONS) {
            let forged = mutate(log, random);
            if (random.chance(0.3)) forged = random.pick(MUTATIONS)(forged, random);
            const found = argumentsOf(fragment, forged.topics, forged.data);
            const expected = decodedByEthers(contract, fragment, forged);
            expect(found, `seed ${seed}: ${JSON.stringify(forged)}`).to.deep.equal(expected);
            if (found === undefined) refused++;
          }
        }
        expect(refused).to.be.greaterThan(SEEDS / 2);
      });

  it('are refused if the data is not hex', () => {
    const fragment = registryInterface.getEvent('PauseWithRemark');
    const { topics, data } = emitted(fragment, seededRandom(1));
    for (const wrong of [`${data}0`, `${data}zz`, data.slice(2), ''])
      expect(argumentsOf(fragment, topics, wrong)).to.equal(undefined);
  });
});
