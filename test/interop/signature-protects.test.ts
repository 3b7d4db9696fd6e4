import { expect } from 'chai';
import type { UnsignedCredential } from '../../service/issuance/credential';
import type { SignedCredential } from '../../service/issuance/sign';
import { derive } from '../helpers/credentials/derive-and-verify';
import { forgeProof } from '../helpers/credentials/forged-proof';
import { oddString, randomSubject, type Members } from '../helpers/credentials/random-subjects';
import { errorOf } from '../helpers/error-of';
import { createTestIssuer } from '../helpers/credentials/test-issuer';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';
import {
  inOneForm,
  isPartOf,
  statementsOf,
  withoutProof,
  type CredentialJson,
} from '../helpers/credentials/statements';
import {
  CONTEXT_URL,
  createUncheckedIssuer,
  credentialWith,
  unprotectedPointer,
  type UncheckedIssuer,
} from '../helpers/credentials/unchecked-issuer';

/** For a long run, raise the number of subjects. */
const SEED = 1;
const SUBJECTS = 30;
const TAMPERINGS = 8;

describe('the signature of a derived credential', () => {
  let issuer: UncheckedIssuer;

  before(async () => {
    issuer = await createUncheckedIssuer();
  });

  /** The derived credential, as unmodified software derives and verifies it. */
  async function deriveAndCheck(credential: SignedCredential, pointers: string[]): Promise<SignedCredential> {
    const derived = await derive(credential, pointers);
    expect(await issuer.verifies(derived), 'what was derived verifies').to.equal(true);
    expect(await issuer.verifies(derived, true), 'what was derived verifies strictly').to.equal(true);
    return derived;
  }

  /**
   * A changed credential that verifies must make the same statements, and must be the same JSON unless it
   * contains unprotected content.
   */
  async function protects(derived: SignedCredential, changed: CredentialJson): Promise<void> {
    const [before, after] = [
      await statementsOf(derived as never, CONTEXT_URL),
      await statementsOf(changed, CONTEXT_URL),
    ];
    const isSame = JSON.stringify(before) === JSON.stringify(after);
    if (await issuer.verifies(changed)) {
      expect(isSame, 'what verifies makes the same statements').to.equal(true);
      if (await isReported(changed)) return;
      // Compared as text, because a comparison of objects ignores __proto__.
      const [asItWas, asItIs] = [derived, changed].map((one) => JSON.stringify(inOneForm(withoutProof(one))));
      expect(asItIs, 'what verifies differs only in what JSON-LD does not distinguish').to.equal(asItWas);
      return;
    }
    const forged = await forgeProof(derived, changed, false);
    if (!forged || !(await issuer.verifies(forged))) return;
    // A holder may disclose less. Another choice of labels and signatures can do nothing else.
    expect(
      after && before && isPartOf(after, before),
      'a rewritten proof shows only what was signed',
    ).to.equal(true);
  }

  it(`protects random subjects that issuing accepts from every change (seed ${SEED})`, async () => {
    const random = seededRandom(SEED);
    const counts = { refused: 0, undefined: 0, tried: 0 };
    for (let index = 0; index < SUBJECTS; index++) {
      const credential = credentialWith(randomSubject(random));
      if (await isReported(credential)) {
        counts.refused++;
        continue;
      }
      let what = JSON.stringify(credential.credentialSubject);
      try {
        const signed = await issuer.sign(credential, new Date());
        const derived = await deriveAndCheck(signed, somePointers(credential, random));
        for (let n = 0; n < TAMPERINGS; n++) {
          const changed = tamper(derived, random);
          if (!changed) continue;
          what = `${JSON.stringify(withoutProof(changed))} of ${JSON.stringify(derived.credentialSubject)}`;
          await protects(derived, changed);
          counts.tried++;
        }
      } catch (error) {
        if ((error as { code?: string }).code === 'SUBJECT_TERM_UNDEFINED') counts.undefined++;
        else
          throw new Error(`seed ${SEED}, subject ${index}: ${what.slice(0, 3_000)}: ${String(error)}`, {
            cause: error,
          });
      }
    }
    expect(counts.tried, JSON.stringify(counts)).to.be.greaterThan(SUBJECTS);
  });

  it('is not made if a context would have to be fetched', async () => {
    const contexts = ['https://www.w3.org/ns/credentials/v2', 'https://attacker.example/c'];
    const checked = await createTestIssuer();
    const failure = await errorOf(checked.sign({ name: 'x' }, { '@context': contexts }));
    expect(failure).to.include({ code: 'CONTEXT_UNKNOWN' });
    expect(failure.message).to.contain('https://attacker.example/c');
  });
});

/** Whether issuing refuses the content. */
async function isReported(credential: object): Promise<boolean> {
  return unprotectedPointer(credential).then(
    (pointer) => pointer !== undefined,
    // Safe mode refuses it.
    () => false,
  );
}

/** Pointers to the whole subject or to some members, of which null and lists cannot be selected singly. */
function somePointers({ credentialSubject }: UnsignedCredential, random: SeededRandom): string[] {
  const members = Object.entries(credentialSubject).filter(
    ([, value]) => value !== null && !Array.isArray(value),
  );
  const chosen = members.filter(() => random.chance(0.5)).map(([key]) => `/credentialSubject/${key}`);
  const isAll = random.chance(0.7) || chosen.length === 0;
  return [isAll ? '/credentialSubject' : '', ...(isAll ? [] : chosen), '/renderMethod'].filter(Boolean);
}

/** The place of a value in a document. */
interface Slot {
  holder: Members;
  key: string;
  value: unknown;
}

const EDITS: ((text: string, at: number, random: SeededRandom) => string)[] = [
  (text, at) => text.slice(0, at) + text.slice(at + 1),
  (text, at, random) => text.slice(0, at) + oddString(random) + text.slice(at),
  (text) => text.normalize('NFC'),
  (text) => text.replaceAll(/\p{Cc}/gu, ''),
  (text) => `${text}"@en`,
];

/** The edits that the cryptosuite is known not to notice. */
function withoutNotice(text: string): string {
  const other = text.replaceAll(/\p{Surrogate}/gu, '\udbff').replace(/_:\S*/, '_:other');
  return other.replace(/<urn:bnid:([^>\s]*)>/, '_:$1');
}

/** Other forms of a value, some of which mean the same. */
const FORMS: ((value: unknown) => unknown)[] = [
  (value) => [value],
  (value) => [value, structuredClone(value)],
  (value) => [[value]],
  (value) => ({ '@value': value, '@index': 'x' }),
  (value) => ({ '@list': [value] }),
  (value) => ({ id: value }),
  (value) => (Array.isArray(value) ? value.flat().reverse() : String(value)),
  (value) => (typeof value === 'number' ? Number(value.toPrecision(16)) : Number(value)),
];

const VALUES: unknown[] = ['', null, true, 0, 'x', [], {}, { paid: null }, '_:b0', 'urn:x:added'];
const KEYS =
  'vessel description id type @index @vocab @none @context __proto__ paid:in-full packagesWeight'.split(' ');

/** Makes a change of an attacker in a copy, but not in its proof. Undefined if nothing changed. */
function tamper(credential: SignedCredential, random: SeededRandom): CredentialJson | undefined {
  const changed = structuredClone(credential) as unknown as Members;
  const everywhere = slotsOf(changed).filter(({ key }) => key !== 'proof' && key !== 'proofValue');
  const inSubject = slotsOf(changed.credentialSubject as Members);
  const slots = inSubject.length > 0 && random.chance(0.7) ? inSubject : everywhere;
  const [slot, other] = [random.pick(slots), random.pick(slots)];
  const blind = slots.filter(
    (one) => typeof one.value === 'string' && withoutNotice(one.value) !== one.value,
  );
  const newKeys = [...KEYS, `https://example.com/terms#${slot.key}`];
  const edit = (): void => {
    const text = String(slot.value);
    const edited = EDITS.map((one) => one(text, random.below(text.length + 1), random));
    put(slot, random.pick(edited.filter((one) => one !== text)));
  };
  const moveToIssuer = (): void => {
    const { description, ...subject } = changed.credentialSubject as Members;
    changed.issuer = { id: changed.issuer, description };
    changed.credentialSubject = subject;
  };
  // Copies, because a value may be moved into itself.
  const [value, otherValue] = [structuredClone(slot.value), structuredClone(other.value)];
  random.pick([
    edit,
    edit,
    () => blind.forEach((one) => put(one, withoutNotice(one.value as string))),
    () => (changed['@context'] as unknown[]).push(random.pick([{}, { paid: null }, { vessel: '@index' }])),
    moveToIssuer,
    moveToIssuer,
    () => put(slot, random.pick(FORMS)(value)),
    () => put(slot, random.pick(VALUES)),
    () => put({ ...slot, key: random.pick(KEYS) }, random.pick(VALUES)),
    () => takeAway(slot),
    () => (takeAway(slot), put({ ...slot, key: random.pick(newKeys) }, value)),
    () => (takeAway(slot), put({ ...other, key: slot.key }, value)),
    () => (put(slot, otherValue), put(other, value)),
  ])();
  return JSON.stringify(changed) === JSON.stringify(credential) ? undefined : changed;
}

function slotsOf(holder: Members): Slot[] {
  return Object.entries(holder).flatMap(([key, value]) => [
    { holder, key, value },
    ...(typeof value === 'object' && value !== null ? slotsOf(value as Members) : []),
  ]);
}

/** Makes an own property, even if its name is `__proto__`. */
function put({ holder, key }: Slot, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

function takeAway({ holder, key }: Slot): void {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else delete holder[key];
}
