import { expect } from 'chai';
import * as encoding from '../../node_modules/@digitalbazaar/ecdsa-sd-2023-cryptosuite/lib/proofValue.js';
import { codeOf } from '../../service/base/errors';
import type { JsonObject } from '../../service/issuance/credential';
import { readProofValue } from '../../service/verification/proof-value';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { seededRandom } from '../helpers/seeded-random';
import { signWithMembers } from '../helpers/credentials/signed-proof';
import {
  failuresOf,
  outcomesOf,
  prepareVerification,
  type VerificationParts,
} from '../helpers/credentials/verification-parts';

/** Encoders of the CBOR items (RFC 8949) of a proof value. */
const head = (major: number, argument: number): Buffer =>
  Buffer.from(argument < 24 ? [(major << 5) | argument] : [(major << 5) | 25, argument >> 8, argument & 255]);
const integer = (value: number): Buffer => head(0, value);
const bytes = (value: Uint8Array): Buffer => Buffer.concat([head(2, value.length), value]);
const text = (value: string): Buffer => Buffer.concat([head(3, value.length), Buffer.from(value)]);
const array = (items: Buffer[]): Buffer => Buffer.concat([head(4, items.length), ...items]);
const map = (entries: Buffer[][]): Buffer => Buffer.concat([head(5, entries.length), ...entries.flat()]);
const tagged = (item: Buffer): Buffer => Buffer.concat([Buffer.from([0xd8, 64]), item]);
const openEnded = (major: number, items: Buffer[]): Buffer =>
  Buffer.concat([Buffer.from([(major << 5) | 31]), ...items, Buffer.from([0xff])]);

const entries = (labels: [number, Buffer][]): Buffer[][] =>
  labels.map(([index, label]) => [integer(index), bytes(label)]);

const DERIVED = Buffer.from([0xd9, 0x5d, 0x01]);
const BASE = Buffer.from([0xd9, 0x5d, 0x00]);
const proofOf = (credential: JsonObject): JsonObject => credential.proof as JsonObject;
const bytesOf = (credential: JsonObject): Buffer =>
  Buffer.from((proofOf(credential).proofValue as string).slice(1), 'base64url');
const withProof = (credential: JsonObject, changes: JsonObject): JsonObject => ({
  ...credential,
  proof: { ...proofOf(credential), ...changes },
});
const withBytes = (credential: JsonObject, ...parts: Buffer[]): JsonObject =>
  withProof(credential, { proofValue: `u${Buffer.concat(parts).toString('base64url')}` });

describe('the proofValue of a proof', () => {
  let parts: VerificationParts;
  let derived: JsonObject;
  /** The five components, and the entries of the fourth. */
  let components: [Buffer, Buffer, Buffer, Buffer, Buffer];
  let labels: [number, Buffer][];

  before(async () => {
    parts = await prepareVerification();
    ({ derived } = parts);
    const proof = encoding.parseDisclosureProofValue({ proof: proofOf(derived) });
    labels = [...proof.labelMap].map(([name, label]) => [
      Number(name.slice('c14n'.length)),
      Buffer.from(label.slice(1), 'base64url'),
    ]);
    components = [
      bytes(proof.baseSignature),
      bytes(proof.publicKey),
      array(proof.signatures.map(bytes)),
      map(entries(labels)),
      array(proof.mandatoryIndexes.map(integer)),
    ];
  });

  const withLabels = (labelMap: Buffer): JsonObject =>
    withBytes(derived, DERIVED, array(components.with(3, labelMap)));

  async function judge(credential: JsonObject): Promise<{ outcome: string; failures: string }> {
    const { documentIntegrity } = await parts.verify(credential);
    return { outcome: documentIntegrity.outcome, failures: failuresOf(documentIntegrity) };
  }

  for (const [name, changed] of Object.entries<() => JsonObject>({
    'as this test encodes it': () => withBytes(derived, DERIVED, array(components)),
    'with arrays and maps of indefinite length': () => {
      const labelMap = openEnded(5, entries(labels).flat());
      return withBytes(derived, DERIVED, openEnded(4, components.with(3, labelMap)));
    },
    'with the labels in another order': () => withLabels(map(entries(labels).reverse())),
    'with byte strings that are tagged as typed arrays': () =>
      withBytes(
        derived,
        DERIVED,
        array(components.map((component, index) => (index < 2 ? tagged(component) : component))),
      ),
  })) {
    it(`is valid ${name}`, async () => {
      expect(await judge(changed())).to.deep.equal({ outcome: 'valid', failures: '' });
    });
  }

  for (const [name, { changed, problem }] of Object.entries<{ changed: () => JsonObject; problem: string }>({
    'with a sixth component': {
      changed: () => withBytes(derived, DERIVED, array([...components, integer(0)])),
      problem: 'has 6 components, not 5',
    },
    'with a sixth component in an array of indefinite length': {
      changed: () => withBytes(derived, DERIVED, openEnded(4, [...components, integer(0)])),
      problem: 'has 6 components, not 5',
    },
    'with only four of the components': {
      changed: () => withBytes(derived, DERIVED, array(components.slice(0, 4))),
      problem: 'has 4 components, not 5',
    },
    'with something after the components': {
      changed: () => withBytes(derived, DERIVED, array(components), integer(0)),
      problem: 'something follows it',
    },
    'if it is cut off': {
      changed: () => withBytes(derived, bytesOf(derived).subarray(0, -1)),
      problem: 'it ends too early',
    },
    'with labels in an array': {
      changed: () => withLabels(array(labels.map(([, label]) => bytes(label)))),
      problem: 'labelMap is not a map of integers to 32 bytes each',
    },
    'with text as the keys of labels': {
      changed: () => withLabels(map(labels.map(([index, label]) => [text(String(index)), bytes(label)]))),
      problem: 'labelMap is not a map of integers to 32 bytes each',
    },
    'with a label of 31 bytes': {
      changed: () => withLabels(map(entries([...labels, [100, Buffer.alloc(31)]]))),
      problem: 'labelMap is not a map of integers to 32 bytes each',
    },
    'with two labels of the same key': {
      changed: () => withLabels(map(entries([...labels, ...labels.slice(0, 1)]))),
      problem: 'has a key twice',
    },
    'with padding': {
      changed: () => withProof(derived, { proofValue: `${proofOf(derived).proofValue as string}=` }),
      problem: 'not base64url without padding',
    },
    'with a space at its end': {
      changed: () => withProof(derived, { proofValue: `${proofOf(derived).proofValue as string} ` }),
      problem: 'not base64url without padding',
    },
    'with a space in its middle': {
      changed: () => {
        const value = proofOf(derived).proofValue as string;
        return withProof(derived, { proofValue: `${value.slice(0, 41)} ${value.slice(41)}` });
      },
      problem: 'not base64url without padding',
    },
    'with + and / for - and _': {
      changed: () => {
        const value = (proofOf(derived).proofValue as string).replaceAll('-', '+').replaceAll('_', '/');
        return withProof(derived, { proofValue: value });
      },
      problem: 'not base64url without padding',
    },
    'with a sixth component in a base proof': {
      changed: () => {
        const payload = Buffer.from(bytesOf(parts.base).subarray(BASE.length));
        payload[0] = head(4, 6)[0]!;
        return withBytes(parts.base, BASE, payload, integer(0));
      },
      problem: 'has 6 components, not 5',
    },
    'with padding in a base proof': {
      changed: () => withProof(parts.base, { proofValue: `${proofOf(parts.base).proofValue as string}=` }),
      problem: 'not base64url without padding',
    },
  })) {
    it(`is invalid ${name}`, async () => {
      const { outcome, failures } = await judge(changed());
      expect(outcome).to.equal('invalid');
      expect(failures)
        .to.match(/^proof: it has a proofValue that /)
        .and.to.contain(problem);
    });
  }

  it('is never accepted if the library cannot read it', () => {
    const random = seededRandom(5);
    let right = 0;
    for (let run = 0; run < 3_000; run++) {
      const changed = Buffer.from(bytesOf(derived));
      for (let change = 0; change <= run % 3; change++) {
        const at = DERIVED.length + random.below(random.chance(0.5) ? 8 : changed.length - DERIVED.length);
        changed[at] = random.below(256);
      }
      const proof = { proofValue: `u${changed.toString('base64url')}` };
      if (readProofValue(proof.proofValue)?.problem !== undefined) continue;
      right += 1;
      expect(() => encoding.parseDisclosureProofValue({ proof }), proof.proofValue).not.to.throw();
    }
    expect(right).to.be.within(300, 2_700);
  });

  it('is checked before a credential is derived', async () => {
    const value = `${proofOf(parts.base).proofValue as string}=`;
    const error: unknown = await parts
      .derive(withProof(parts.base, { proofValue: value }), [''])
      .catch((thrown: unknown) => thrown);
    expect(codeOf(error)).to.equal('PROOF_UNSUPPORTED');
  });
});

describe('the previousProof of a proof', () => {
  const EARLIER = 'urn:uuid:0192f3c8-5a00-7000-8000-00000000000e';
  let parts: VerificationParts;

  before(async () => {
    parts = await prepareVerification();
  });

  for (const [name, members] of Object.entries<JsonObject>({
    'a missing proof': { previousProof: EARLIER },
    'several proofs, one of them missing': { id: 'urn:x:1', previousProof: ['urn:x:1', EARLIER] },
    'its own proof': { id: EARLIER, previousProof: EARLIER },
  })) {
    it(`makes the credential invalid if it names ${name}, although the library verifies it`, async () => {
      const base = await signWithMembers(parts.issuer, members);
      const derived = await derive(base, ['']);
      expect(await verify(derived, parts.issuer.didDocument)).to.have.property('verified', true);
      for (const credential of [base, derived]) {
        const verification = await parts.verify(credential);
        expect(outcomesOf(verification)).to.deep.equal(['invalid', 'valid', 'valid']);
        expect(failuresOf(verification.documentIntegrity)).to.contain('previousProof');
      }
    });
  }

  it("gives 'could not tell' if it names another proof, and invalid if that is missing", async () => {
    const proof = proofOf(parts.derived);
    const chain = [
      { ...proof, id: EARLIER },
      { ...proof, previousProof: EARLIER },
    ];
    const { documentIntegrity } = await parts.verify({ ...parts.derived, proof: chain });
    expect(documentIntegrity.outcome).to.equal('could not tell');
    const broken = [{ ...proof, id: 'urn:x:other' }, chain[1]];
    expect((await parts.verify({ ...parts.derived, proof: broken })).documentIntegrity.outcome).to.equal(
      'invalid',
    );
  });
});
