import { createSignCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { expect } from 'chai';
import type { ServiceError } from '../../service/base/errors';
import { pointerStep } from '../../service/base/json';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { deriveCredential } from '../../service/verification/derive-credential';
import { verifyCredential } from '../../service/verification/verify-credential';
import { verify as verifyWithLibrary } from '../helpers/credentials/derive-and-verify';
import { fakeSources } from '../helpers/credentials/fake-sources';
import { createPlainSign } from '../helpers/credentials/plain-signing';
import {
  loaderWith,
  ownCredential,
  randomContext,
  randomObject,
} from '../helpers/credentials/random-contexts';
import { withoutProof } from '../helpers/credentials/statements';
import { errorOf } from '../helpers/error-of';
import { seededRandom } from '../helpers/seeded-random';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';

const SUBJECT = {
  type: ['BillOfLading'],
  scac: 'SGPU',
  blNumber: 'SGCNM21566325',
  vessel: 'Ever Given',
  packages: [
    { packagesDescription: 'tea', packagesWeight: '1 t' },
    { packagesDescription: 'rice', packagesWeight: '2 t' },
  ],
};

const DATE = '2026-01-31T00:00:00.000Z';

function pointersIn(value: unknown, pointer = ''): string[] {
  if (typeof value !== 'object' || value === null) return [pointer];
  const members = Object.entries(value).filter(([name]) => name !== '@context');
  return [pointer, ...members.flatMap(([name, member]) => pointersIn(member, pointer + pointerStep(name)))];
}

/** The value at a pointer. In a version that shows it alone, a list on the way has only the named item. */
function valueAt(document: unknown, pointer: string, isAlone: boolean): unknown {
  if (pointer === '') return { ...(document as object), proof: undefined };
  return pointer
    .slice(1)
    .split('/')
    .reduce<unknown>((value, token) => {
      const isList = isAlone && Array.isArray(value) && value.length === 1;
      return (value as Record<string, unknown>)[isList ? '0' : token];
    }, document);
}

describe('deriving a credential', () => {
  let issuer: TestIssuer;
  let base: JsonObject;

  before(async () => {
    issuer = await createTestIssuer();
    base = { ...(await issuer.sign(SUBJECT)) };
  });

  const derive = async (pointers: string[], credential = base): Promise<JsonObject> =>
    deriveCredential(credential, pointers, createDocumentLoader(issuer.contextUrl));
  const refusal = (pointers: string[], credential = base): Promise<ServiceError> =>
    errorOf(derive(pointers, credential));

  it('discloses the named members, the types of their objects, and mandatory members', async () => {
    const before = structuredClone(base);
    const derived = await derive([
      '/credentialSubject/packages/1/packagesWeight',
      '/credentialSubject/blNumber',
    ]);
    expect(base, 'what was derived from').to.deep.equal(before);
    expect(derived.credentialSubject).to.deep.equal({
      type: ['BillOfLading'],
      blNumber: 'SGCNM21566325',
      packages: [{ packagesWeight: '2 t' }],
    });
    expect(derived).to.have.all.keys([
      ...['@context', 'credentialStatus', 'credentialSubject', 'id', 'issuer', 'proof', 'type'],
      ...['validFrom', 'validUntil'],
    ]);
    // The id decrypts the remark.
    expect(derived.id).to.equal(base.id);
    expect((await verifyWithLibrary(derived, issuer.didDocument)).verified).to.equal(true);
  });

  it('takes a proof that is a list of one', async () => {
    const derived = await derive(['/credentialSubject/blNumber'], { ...base, proof: [base.proof] });
    expect((await verifyWithLibrary(derived, issuer.didDocument)).verified).to.equal(true);
    const listed = { ...base, proof: [base.proof] };
    expect((await verifyCredential(listed, fakeSources(issuer))).outcome).to.equal('valid');
  });

  it('keeps mandatory members, and the result does not verify once one is removed', async () => {
    const derived = await derive(['/credentialSubject/scac']);
    for (const mandatory of ['issuer', 'validFrom', 'validUntil', 'credentialStatus']) {
      expect(derived).to.have.deep.property(mandatory, base[mandatory]);
      const without = { ...derived, [mandatory]: undefined };
      const { verified } = await verifyWithLibrary(structuredClone(without), issuer.didDocument);
      expect(verified, mandatory).to.equal(false);
      expect((await verifyCredential(without, fakeSources(issuer))).outcome, mandatory).not.to.equal('valid');
    }
  });

  it('leaves the renderer out unless a pointer covers it', async () => {
    expect(await derive(['/credentialSubject'])).not.to.have.property('renderMethod');
    for (const pointers of [['/credentialSubject', '/renderMethod'], ['']])
      expect((await derive(pointers)).renderMethod).to.deep.equal(base.renderMethod);
  });

  for (const [pointer, near] of [
    // The most similar member comes first.
    ['/credentialSubject/blnumber', 'Its members: /credentialSubject/blNumber,'],
    ['/credentialSubject/vesel', '/credentialSubject/vessel'],
    ['/credentialsubject/scac', '/credentialSubject'],
    ['/credentialSubject/packages/2', '/credentialSubject/packages/0'],
    ['/credentialSubject/packages/-', '/credentialSubject/packages/0'],
    ['/credentialSubject/packages/01', '/credentialSubject/packages/0'],
    ['/credentialSubject/scac/0', 'There is nothing inside "/credentialSubject/scac"'],
    ['/constructor', '/credentialSubject'],
    ['/credentialSubject/__proto__', '/credentialSubject/packages'],
    ['/', '/id'],
  ] as const) {
    it(`refuses ${pointer}, which matches nothing, and names what is near it`, async () => {
      const { code, message } = await refusal(['/credentialSubject/scac', pointer]);
      expect(code).to.equal('POINTER_MATCHES_NOTHING');
      expect(message).to.contain(`${pointer} matches nothing`).and.contain(near);
    });
  }

  it('refuses malformed pointers, and pointers to the proof or the contexts', async () => {
    for (const pointer of ['credentialSubject', '/a~2', '/proof', '/proof/created', '/@context/0'])
      expect((await refusal([pointer])).code, pointer).to.equal('POINTER_INVALID');
  });

  it('takes pointers as those of the file, also at null, and at a list of one value or none', async () => {
    const [tea, rice] = SUBJECT.packages;
    const signed = { ...(await issuer.sign({ ...SUBJECT, packages: [null, tea, rice] as never })) };
    const one = { ...(await issuer.sign({ ...SUBJECT, packages: tea, links: ['x'] })) };
    for (const [credential, pointer, member, value] of [
      [base, '/renderMethod/0', 'renderMethod', base.renderMethod],
      [
        base,
        '/renderMethod/0/templateName',
        'renderMethod',
        [
          {
            id: 'https://generic-templates.tradetrust.io',
            type: 'EMBEDDED_RENDERER',
            templateName: 'BILL_OF_LADING',
          },
        ],
      ],
      [base, '/type/0', 'type', ['VerifiableCredential']],
      [base, '/credentialSubject/type/0', 'credentialSubject', { type: ['BillOfLading'] }],
      [
        signed,
        '/credentialSubject/packages/2/packagesWeight',
        'credentialSubject',
        { type: ['BillOfLading'], packages: [{ packagesWeight: '2 t' }] },
      ],
      [one, '/credentialSubject/packages', 'credentialSubject', { type: ['BillOfLading'], packages: tea }],
      [
        one,
        '/credentialSubject/packages/packagesWeight',
        'credentialSubject',
        { type: ['BillOfLading'], packages: { packagesWeight: '1 t' } },
      ],
      [one, '/credentialSubject/links/0', 'credentialSubject', { type: ['BillOfLading'], links: ['x'] }],
    ] as const) {
      const derived = await derive([pointer], credential);
      expect(derived[member], pointer).to.deep.equal(value);
      expect((await verifyWithLibrary(derived, issuer.didDocument)).verified, pointer).to.equal(true);
      const verification = await verifyCredential(credential, fakeSources(issuer), { reveal: [pointer] });
      expect(verification.outcome, pointer).to.equal('valid');
    }
    expect((await refusal(['/credentialSubject/packages/0'], signed)).code).to.equal('POINTER_INVALID');
    const { message } = await refusal(['/credentialSubject/packages/0/packagesWeight'], one);
    expect(message).to.contain('/credentialSubject/packages/0/packagesWeight matches nothing');
  });

  it('keeps what an issuer made mandatory, and refuses what JSON-LD only names so in its copy', async () => {
    const load = createDocumentLoader(issuer.contextUrl);
    const sign = await createPlainSign(issuer.keyPair, load);
    const document = withoutProof(base);
    const signWith = async (mandatoryPointers: string[]): Promise<JsonObject> => {
      const cryptosuite = createSignCryptosuite({ mandatoryPointers });
      return { ...(await sign(structuredClone(document), DATE, cryptosuite)) };
    };
    const signed = await signWith(['/issuer', '/renderMethod', '/credentialSubject/packages/1']);
    const derived = await derive(['/credentialSubject/scac'], signed);
    expect(derived).to.have.nested.property('renderMethod[0].templateName', 'BILL_OF_LADING');
    expect(derived).to.have.nested.property('credentialSubject.packages[0].packagesWeight', '2 t');
    const ofCopy = await signWith(['/renderMethod/templateName']);
    expect((await refusal(['/credentialSubject/scac'], ofCopy)).code).to.equal('DERIVATION_FAILED');
    expect((await derive([''], ofCopy)).renderMethod).to.deep.equal(base.renderMethod);
    expect((await verifyWithLibrary(derived, issuer.didDocument)).verified).to.equal(true);
    const without = { ...signed, renderMethod: undefined };
    expect((await refusal(['/credentialSubject/scac'], without)).code).to.equal('CONTENT_CHANGED');
  });

  it('says that content was changed only if a signature proves it', async () => {
    const packages = [{ packagesWeight: '9 t' }];
    const changed = { ...base, credentialSubject: { ...SUBJECT, packages } };
    expect(await refusal(['/credentialSubject'], changed)).to.include({ code: 'CONTENT_CHANGED' });
    const edited = { ...base, credentialSubject: { ...SUBJECT, vessel: 'Ever Forward' } };
    expect(await refusal(['/credentialSubject/vessel'], edited)).to.include({ code: 'CONTENT_CHANGED' });
    const broken = {
      ...base,
      '@context': [...(base['@context'] as string[]), { id: 'https://x.example/id' }],
    };
    expect(await refusal(['/credentialSubject'], broken)).to.include({ code: 'DERIVATION_FAILED' });
    const { documentIntegrity } = await verifyCredential(broken, fakeSources(issuer));
    expect(documentIntegrity.outcome).to.equal('could not tell');
  });

  it('calls nothing changed that a context makes impossible to show', async () => {
    const own = (name: string): string => `https://x.example/#${name}`;
    const context = {
      typedAs: '@type',
      T: { '@id': own('T'), '@context': { '@propagate': false, a: own('a') } },
      U: own('U'),
      map: { '@id': own('map'), '@container': '@type' },
      rendered: { '@id': own('rendered'), '@context': { '@protected': true, id: own('id') } },
    };
    const load = loaderWith(context);
    const sign = await createPlainSign(issuer.keyPair, load);
    const signed = async (subject: JsonObject): Promise<JsonObject> => {
      const document = { ...ownCredential(subject), type: ['VerifiableCredential', 'U'] };
      const cryptosuite = createSignCryptosuite({ mandatoryPointers: ['/issuer'] });
      return { ...(await sign(document, DATE, cryptosuite)) };
    };
    // The types are always shown whole: without them, terms have no meaning.
    const derived = await deriveCredential(await signed({ type: ['T', 'U'], a: 'x' }), ['/type/1'], load);
    expect(derived.type).to.deep.equal(['VerifiableCredential', 'U']);
    const rendered = { id: 'https://x.example', type: 'U' };
    const shown = await deriveCredential(
      await signed({ U: 'x', rendered }),
      ['/credentialSubject/rendered/id'],
      load,
    );
    expect(shown.credentialSubject).to.deep.equal({ rendered });
    for (const [subject, pointer] of [
      [{ typedAs: 'T', a: 'x' }, '/credentialSubject/a'],
      [{ map: { T: { a: 'x' } } }, '/credentialSubject'],
    ] as [JsonObject, string][])
      expect(await errorOf(deriveCredential(await signed(subject), [pointer], load))).to.include({
        code: 'DERIVATION_FAILED',
      });
  });

  it('names the context with a base, whatever the libraries say of it', async () => {
    const own = (name: string): string => `https://x.example/#${name}`;
    const T = { '@id': own('T'), '@context': { a: own('a') } };
    const load = loaderWith({ '@base': 'https://x.example/', T });
    const sign = await createPlainSign(issuer.keyPair, load);
    const cryptosuite = createSignCryptosuite({ mandatoryPointers: ['/issuer'] });
    const signed = { ...(await sign(ownCredential({ type: 'T', a: 'x' }), DATE, cryptosuite)) };
    const refused = await errorOf(deriveCredential(signed, ['/credentialSubject/a'], load));
    expect(refused).to.include({ code: 'DERIVATION_FAILED' });
    expect(refused.message).to.match(/: \/@context uses @base of JSON-LD \(context https:.*own-v1/);
  });

  it('shows what a pointer of a random document names in a version that verifies, or refuses', async () => {
    const counts = { shown: 0, refused: 0 };
    for (let seed = 1; seed <= 30; seed++) {
      const random = seededRandom(seed);
      const load = loaderWith(randomContext(random, 'signed'));
      const sign = await createPlainSign(issuer.keyPair, load);
      const credential = ownCredential({ type: 'T', ...randomObject(random) });
      const cryptosuite = createSignCryptosuite({ mandatoryPointers: ['/issuer', '/type'] });
      const signed = await sign(structuredClone(credential), DATE, cryptosuite).catch(() => undefined);
      if (signed === undefined) continue;
      for (const pointer of pointersIn(credential)) {
        const what = `seed ${seed}: ${pointer} of ${JSON.stringify(signed)}`;
        const derived = await deriveCredential({ ...signed }, [pointer], load).catch(
          (thrown: ServiceError) => {
            expect(thrown.code, `${what}: ${thrown.stack}`).to.match(/^(POINTER_INVALID|DERIVATION_FAILED)$/);
            expect(thrown.message).to.match(/ null|signed as one|not covered by the signature/);
          },
        );
        if (derived === undefined) counts.refused++;
        else {
          const { verified } = await verifyWithLibrary(derived, issuer.didDocument, { documentLoader: load });
          expect(verified, what).to.equal(true);
          expect(valueAt(derived, pointer, true), what).to.deep.equal(valueAt(credential, pointer, false));
          counts.shown++;
        }
      }
    }
    expect(counts.shown).to.be.greaterThan(100);
  });

  it('refuses pointers to null', async () => {
    const changed = { ...base, credentialSubject: { ...SUBJECT, voyageNo: null } };
    expect((await refusal(['/credentialSubject/voyageNo'], changed)).code).to.equal('POINTER_INVALID');
  });

  it('refuses a credential that is derived, unsigned, changed or of another cryptosuite', async () => {
    for (const [credential, code] of [
      [await derive(['/credentialSubject']), 'CREDENTIAL_ALREADY_DERIVED'],
      [{ ...base, proof: undefined }, 'PROOF_UNSUPPORTED'],
      [{ ...base, issuer: undefined }, 'CONTENT_CHANGED'],
    ] as const)
      expect(await refusal(['/credentialSubject'], credential)).to.include({ code });
    const other = { ...base, proof: { ...(base.proof as object), cryptosuite: 'bbs-2023' } };
    expect((await refusal(['/credentialSubject'], other)).message).to.contain('bbs-2023');
  });
});
