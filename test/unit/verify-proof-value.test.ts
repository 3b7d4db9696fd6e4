import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { from } from '@digitalbazaar/ecdsa-multikey';
import { createSignCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { expect } from 'chai';
import * as jsigs from 'jsonld-signatures';
import * as encoding from '../../node_modules/@digitalbazaar/ecdsa-sd-2023-cryptosuite/lib/proofValue.js';
import { codeOf } from '../../service/base/errors';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { MANDATORY_POINTERS, type SignedCredential } from '../../service/issuance/sign';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { withoutProof } from '../helpers/credentials/statements';
import type { TestIssuer } from '../helpers/credentials/test-issuer';
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

  const withComponent = (index: number, component: Buffer): JsonObject =>
    withBytes(derived, DERIVED, array(components.with(index, component)));
  const withLabels = (labelMap: Buffer): JsonObject => withComponent(3, labelMap);

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
      withBytes(derived, DERIVED, array(components.map((one, index) => (index < 2 ? tagged(one) : one)))),
  })) {
    it(`is valid ${name}`, async () => {
      expect(await judge(changed())).to.deep.equal({ outcome: 'valid', failures: '' });
    });
  }

  const withValue = (credential: JsonObject, change: (value: string) => string): JsonObject =>
    withProof(credential, { proofValue: change(proofOf(credential).proofValue as string) });
  const padded = (credential: JsonObject): JsonObject => withValue(credential, (value) => `${value}=`);
  const sixth = (): Buffer[] => [...components, integer(0)];
  /** Credentials whose proof value has this problem. */
  const malformed: Record<string, () => JsonObject[]> = {
    'has 6 components, not 5': () => [
      withBytes(derived, DERIVED, array(sixth())),
      withBytes(derived, DERIVED, openEnded(4, sixth())),
      withBytes(parts.base, BASE, head(4, 6), bytesOf(parts.base).subarray(BASE.length + 1), integer(0)),
    ],
    'has 4 components, not 5': () => [withBytes(derived, DERIVED, array(components.slice(0, 4)))],
    'something follows it': () => [withBytes(derived, DERIVED, array(components), integer(0))],
    'it ends too early': () => [withBytes(derived, bytesOf(derived).subarray(0, -1))],
    'is not the CBOR of an array': () => [withBytes(derived, DERIVED, integer(0))],
    'an item in it has the major type 7': () => [withComponent(4, Buffer.of(0xf6))],
    'an item in it has a reserved length': () => [withComponent(4, Buffer.of(0x9c))],
    'an item in it has no length': () => [withComponent(0, openEnded(2, []))],
    'baseSignature is not 64 bytes': () => [withComponent(0, bytes(Buffer.alloc(63)))],
    'publicKey is not 35 bytes': () => [withComponent(1, bytes(Buffer.alloc(36)))],
    'signatures is not an array of 64 bytes each': () => [
      withComponent(2, integer(0)),
      withComponent(2, array([bytes(Buffer.alloc(63))])),
    ],
    'mandatoryIndexes is not an array of integers': () => [
      withComponent(4, integer(0)),
      withComponent(4, array([text('0')])),
    ],
    'labelMap is not a map of integers to 32 bytes each': () => [
      withLabels(array(labels.map(([, label]) => bytes(label)))),
      withLabels(map(labels.map(([index, label]) => [text(String(index)), bytes(label)]))),
      withLabels(map(entries([...labels, [100, Buffer.alloc(31)]]))),
    ],
    'has a key twice': () => [withLabels(map(entries([...labels, ...labels.slice(0, 1)])))],
    'not base64url without padding': () => [
      padded(derived),
      padded(parts.base),
      withValue(derived, (value) => `${value} `),
      withValue(derived, (value) => `${value.slice(0, 41)} ${value.slice(41)}`),
      withValue(derived, (value) => value.replaceAll('-', '+').replaceAll('_', '/')),
    ],
  };
  for (const [problem, changed] of Object.entries(malformed)) {
    it(`is invalid: ${problem}`, async () => {
      for (const credential of changed()) {
        const { outcome, failures } = await judge(credential);
        expect(outcome).to.equal('invalid');
        expect(failures)
          .to.match(/^proof: it has a proofValue that /)
          .and.to.contain(problem);
      }
    });
  }

  it('is checked before a credential is derived', async () => {
    const error: unknown = await parts.derive(padded(parts.base), ['']).catch((thrown: unknown) => thrown);
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

describe('a proof that expires', () => {
  const EXPIRES = '2026-02-10T00:00:00Z';
  let parts: VerificationParts;
  let forms: JsonObject[];

  before(async () => {
    parts = await prepareVerification();
    const base = { ...(await signWithMembers(parts.issuer, { expires: EXPIRES })) };
    forms = [base, await parts.derive(base, [''])];
  });

  const integrity = async (credential: JsonObject, time: string) => {
    const clock = { now: () => Date.parse(time) };
    return (await parts.verify(credential, { clock })).documentIntegrity;
  };

  it('is valid before its expiry and invalid from then on, although its signature verifies', async () => {
    for (const credential of forms) {
      expect((await integrity(credential, '2026-02-09T00:00:00Z')).outcome).to.equal('valid');
      const { outcome, checks } = await integrity(credential, EXPIRES);
      expect(outcome).to.equal('invalid');
      expect(checks.find(({ check }) => check === 'proof')?.found).to.contain(EXPIRES);
      expect(checks.find(({ check }) => check === 'signature')?.outcome).to.equal('valid');
    }
  });

  it("gives 'could not tell' after its expiry if that is spelled as an IRI", async () => {
    const date = { '@type': 'http://www.w3.org/2001/XMLSchema#dateTime', '@value': EXPIRES };
    for (const credential of forms) {
      const proof: JsonObject = {
        ...(credential.proof as object),
        'https://w3id.org/security#expiration': date,
      };
      delete proof.expires;
      const spelled = { ...credential, proof };
      const { outcome, checks } = await integrity(spelled, '2026-02-20T00:00:00Z');
      expect(checks.find(({ check }) => check === 'signature')?.outcome).to.equal('valid');
      expect(outcome).to.equal('could not tell');
    }
  });
});

/** A credential whose proof has these additional members and signs them. */
async function signWithMembers(issuer: TestIssuer, members: JsonObject): Promise<SignedCredential> {
  const key = await from({ '@context': 'https://w3id.org/security/multikey/v1', ...issuer.keyPair });
  const cryptosuite = createSignCryptosuite({ mandatoryPointers: MANDATORY_POINTERS });
  const suite = new DataIntegrityProof({ signer: key.signer(), cryptosuite });
  return jsigs.sign<SignedCredential>(withoutProof(await issuer.sign()), {
    suite: Object.assign(suite, { proof: members }),
    purpose: new jsigs.purposes.AssertionProofPurpose(),
    documentLoader: createDocumentLoader(issuer.contextUrl),
  });
}
