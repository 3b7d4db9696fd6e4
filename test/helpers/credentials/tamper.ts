import { oddString, type Members } from './random-subjects';
import type { SeededRandom } from '../seeded-random';
import type { CredentialJson } from './statements';

/** The place of a value in a document. */
interface Slot {
  holder: Members | unknown[];
  key: string;
  value: unknown;
}

/** Changes a document in place. Returns false if the change does not apply to the document. */
type Change = (slots: Slot[], random: SeededRandom, root: Members) => boolean;

/** A change that an attacker makes to a derived credential: its name, and the changed copy. */
export interface Tampering {
  name: string;
  changed: CredentialJson;
}

/**
 * Makes one change in a copy of a credential, but not in its proof value. Undefined if the chosen change does
 * not apply.
 */
export function tamper(credential: object, random: SeededRandom): Tampering | undefined {
  const changed = structuredClone(credential) as Members;
  const everywhere = slotsOf(changed).filter(({ key }) => key !== 'proofValue' && key !== 'proof');
  const inSubject = slotsOf(changed.credentialSubject as Members);
  const slots = inSubject.length > 0 && random.chance(0.7) ? inSubject : everywhere;
  const name = random.pick(random.chance(0.5) ? PROMISING : Object.keys(CHANGES));
  if (!CHANGES[name]!(slots, random, changed)) return undefined;
  return JSON.stringify(changed) === JSON.stringify(credential) ? undefined : { name, changed };
}

function slotsOf(holder: Members | unknown[]): Slot[] {
  return Object.entries(holder).flatMap(([key, value]) => [
    { holder, key, value: value },
    ...(typeof value === 'object' && value !== null ? slotsOf(value as Members) : []),
  ]);
}

function set({ holder, key }: Slot, value: unknown): true {
  (holder as Members)[key] = value;
  return true;
}

function remove({ holder, key }: Slot): true {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else delete holder[key];
  return true;
}

/** Adds an own property, even if its name is `__proto__`. */
function add(holder: Members, key: string, value: unknown): true {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
  return true;
}

const isText = ({ value }: Slot): boolean => typeof value === 'string';
const isList = ({ value }: Slot): boolean => Array.isArray(value) && value.length > 0;
const isObject = ({ value }: Slot): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isMember = ({ holder }: Slot): boolean => !Array.isArray(holder);

/** Changes one of the slots that fit. */
const toOne =
  (
    fits: (slot: Slot) => boolean,
    change: (slot: Slot, random: SeededRandom, all: Slot[]) => boolean,
  ): Change =>
  (slots, random) => {
    const fitting = slots.filter(fits);
    return fitting.length > 0 && change(random.pick(fitting), random, fitting);
  };

const ADDITIONS: [string, unknown][] = [
  ['vessel', 'x'],
  ['name', 'x'],
  ['id', 'urn:x:added'],
  ['id', '_:b0'],
  ['type', 'https://a.example/Added'],
  ['packagesWeight', '1'],
  ...['@index', '@vocab', '@base', '@none', '@id', '@foo', 'paid', 'paid:in-full', '__proto__'].flatMap(
    (key): [string, unknown][] => [
      [key, 'x'],
      [key, null],
      [key, []],
    ],
  ),
  ['@context', { paid: null }],
  ['@context', []],
  ['@included', []],
  ['vessel', null],
  ['links', []],
];

const EDITS: ((text: string, at: number, random: SeededRandom) => string)[] = [
  (text, at) => text.slice(0, at) + text.slice(at + 1),
  (text, at, random) => text.slice(0, at) + oddString(random) + text.slice(at),
  (text, at) => `${text.slice(0, at)}x${text.slice(at + 1)}`,
  (text) => text.trim(),
  (text) => text.normalize('NFC'),
  (text) => text.normalize('NFD'),
  (text) => text.replaceAll('\r\n', '\n').replaceAll('\r', '\n'),
  (text) => text.toUpperCase(),
  (text) => text.replaceAll(/\p{Cc}/gu, ''),
  (text) => text.replaceAll('\\', '\\\\'),
  (text) => `${text}"@en`,
];

/** Edits that the cryptosuite is known not to notice. */
const BLIND_SPOTS: ((text: string) => string)[] = [
  (text) => text.replaceAll(/\p{Surrogate}/gu, '\udbff'),
  (text) => text.replace(/_:\S*/, '_:other'),
  (text) => text.replace(/<urn:bnid:([^>\s]*)>/, '_:$1'),
];

const SAME_IN_OTHER_WORDS: ((value: unknown) => unknown)[] = [
  (value) => [value],
  (value) => [value, value],
  (value) => [value, null],
  (value) => [[value]],
  (value) => ({ '@value': value }),
  (value) => ({ '@value': value, '@index': 'x' }),
  (value) => ({ '@set': [value] }),
  (value) => ({ '@list': [value] }),
  (value) => ({ '@id': value }),
  (value) => ({ id: value }),
  (value) => String(value),
  (value) => Number(value),
];

const CHANGES: Record<string, Change> = {
  'edits a text': toOne(isText, (slot, random) => {
    const text = slot.value as string;
    const edited = EDITS.map((edit) => edit(text, random.below(text.length + 1), random));
    const others = edited.filter((other) => other !== text);
    return others.length > 0 && set(slot, random.pick(others));
  }),
  'edits a text where nobody looks': toOne(
    ({ value }) => typeof value === 'string' && BLIND_SPOTS.some((edit) => edit(value) !== value),
    (slot) =>
      set(
        slot,
        BLIND_SPOTS.reduce((text, edit) => edit(text), slot.value as string),
      ),
  ),
  'puts another value': toOne(
    () => true,
    (slot, random) => set(slot, random.pick<unknown>(['', null, true, 0, 'x', [], {}, oddString(random)])),
  ),
  'changes a number slightly': toOne(
    ({ value }) => typeof value === 'number',
    (slot, random) => {
      const value = slot.value as number;
      return set(
        slot,
        random.pick([
          value * (1 + Number.EPSILON),
          Number(value.toPrecision(16)),
          -value,
          0,
          Math.round(value),
          value + 1,
        ]),
      );
    },
  ),
  'writes a value in another way': toOne(
    ({ value }) => typeof value !== 'object',
    (slot, random) => set(slot, random.pick(SAME_IN_OTHER_WORDS)(slot.value)),
  ),
  'takes something away': toOne(() => true, remove),
  'repeats an item': toOne(isList, ({ value }, random) => {
    const list = value as unknown[];
    return list.push(structuredClone(random.pick(list))) > 0;
  }),
  'turns a list around': toOne(isList, ({ value }) => (value as unknown[]).reverse().length > 1),
  'dissolves the lists in a list': toOne(isList, (slot) => set(slot, (slot.value as unknown[]).flat())),
  'takes an item out of its list': toOne(isList, (slot, random) =>
    set(slot, random.pick(slot.value as unknown[])),
  ),
  'puts a list in a list': toOne(isList, (slot) => set(slot, [slot.value])),
  'puts an object in a list, twice': toOne(isObject, (slot) =>
    set(slot, [slot.value, structuredClone(slot.value)]),
  ),
  'divides an object': toOne(isObject, (slot, random) => {
    const [left, right]: [Members, Members] = [{}, {}];
    for (const [key, value] of Object.entries(slot.value as Members)) {
      add(random.chance(0.5) ? left : right, key, value);
    }
    return set(slot, [left, right]);
  }),
  'exchanges two values': toOne(
    () => true,
    (one, random, slots) => {
      const other = random.pick(slots);
      const isInside = JSON.stringify(one.value)?.includes(JSON.stringify(other.value) ?? '');
      return isInside || (set(one, other.value) && set(other, one.value));
    },
  ),
  'moves a member to another object': toOne(isMember, (slot, random, slots) => {
    const target = random.pick([...slots.map(({ holder }) => holder as Members)]);
    if (JSON.stringify(slot.value)?.includes(JSON.stringify(target))) return false;
    remove(slot);
    return add(target, slot.key, slot.value);
  }),
  'moves members of the subject elsewhere': (_slots, random, root) => {
    // Anything can have a description; the other members belong to a Bill of Lading.
    const isMoved = (key: string): boolean => key === 'description' || random.chance(0.2);
    const entries = Object.entries(root.credentialSubject as Members).filter(([key]) => isMoved(key));
    const members = Object.fromEntries(entries.filter(([key]) => key !== 'id' && key !== 'type'));
    const targets: Members[] = [root, (root.renderMethod as Members[] | undefined)?.[0] ?? root];
    if (random.chance(0.5)) {
      root.issuer = { id: root.issuer, ...members };
    } else Object.assign(random.pick(targets), members);
    for (const key of Object.keys(members)) delete (root.credentialSubject as Members)[key];
    return true;
  },
  'makes one object of two': toOne(isList, ({ value }) => {
    const list = value as unknown[];
    if (typeof list[0] !== 'object' || list.length < 2) return false;
    list.splice(0, 2, { ...(list[0] as Members), ...(list[1] as Members) });
    return true;
  }),
  'renames a member': toOne(isMember, (slot, random) => {
    const names = [
      'vessel',
      'scac',
      'name',
      '@index',
      `https://example.com/terms#${slot.key}`,
      `@${slot.key}`,
    ];
    remove(slot);
    return add(slot.holder as Members, random.pick(names), slot.value);
  }),
  'adds a member': toOne(isMember, ({ holder }, random) => {
    const [key, value] = random.pick(ADDITIONS);
    return add(holder as Members, key, value);
  }),
  'adds a context': (_slots, random, root) => {
    const added = random.pick<unknown>([
      {},
      { paid: null },
      { vessel: '@index' },
      'https://www.w3.org/ns/did/v1',
      null,
    ]);
    root['@context'] = [...(root['@context'] as unknown[]), added];
    return true;
  },
};

/** Changes that have found errors, or would have. */
const PROMISING = [
  'edits a text',
  'edits a text where nobody looks',
  'changes a number slightly',
  'moves members of the subject elsewhere',
];
