import type { SeededRandom } from '../seeded-random';

/** A subject, or a part of one, as JSON. */
export type Members = Record<string, unknown>;

const TERMS = (
  'billOfLadingName scac blNumber vessel voyageNo portOfLoading carrierName consigneeName links ' +
  'description'
).split(' ');
  const value = random.pick([oddString(random), { name: oddString(random) }]);
  return JSON.parse(`{"${random.pick(keys)}":${JSON.stringify(value)}}`) as Members;
}

/** An odd subject of a Bill of Lading. Most can be signed, and some must not be. */
export function randomSubject(random: SeededRandom): Members {
  const many = <T>(bound: number, make: () => T): T[] => Array.from({ length: random.below(bound) }, make);
  const terms = many(6, () => [random.pick(TERMS), oddValue(random)] as const);
  const hostile = random.chance(0.15) ? hostileMember(random) : {};
  const subject: Members = {
    type: random.pick([['BillOfLading'], 'BillOfLading', ['BillOfLading', 'https://a.example/Bill']]),
    ...(random.chance(0.3) && { id: oddId(random) }),
    ...Object.fromEntries(terms),
    ...(random.chance(0.6) && { packages: many(4, () => aPackage(random)) }),
    ...(random.chance(0.2) && {
      attachments: [{ data: 'AAAA', filename: oddString(random), mimeType: 'text/plain' }],
    }),
  };
  for (const [key, value] of Object.entries(hostile)) {
    Object.defineProperty(subject, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return subject;
}
