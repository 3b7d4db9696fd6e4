import { expect } from 'chai';
import type { FetchedJson } from '../../service/did/fetch-json';
import type { JsonObject } from '../../service/issuance/credential';
import type { Answer } from '../../service/verification/answer';
import { deriveCredential } from '../../service/verification/derive-credential';
import {
  verifyCredential,
  type Verification,
  type VerificationOptions,
  type VerificationSources,
} from '../../service/verification/verify-credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import type { SignedCredential } from '../../service/issuance/sign';
import { IN_ESCROW, failingWith, fakeSources, resolved } from '../helpers/fake-sources';
import { forgeProof } from '../helpers/forged-proof';
import { createTestIssuer, type TestIssuer } from '../helpers/test-issuer';

const NOBODY = { kind: 'unavailable', url: 'https://issuer.example/', problem: 'cannot be reached' } as const;

describe('verifying a credential', () => {
  let issuer: TestIssuer;
  let base: JsonObject;
  let derived: JsonObject;

  before(async () => {
    issuer = await createTestIssuer();
    base = { ...(await issuer.sign()) };
    derived = await derive(base, ['']);
  });

  const derive = async (credential: JsonObject, pointers: string[]) =>
    deriveCredential(credential, pointers, createDocumentLoader(issuer.contextUrl));
  const verify = async (
    credential: unknown,
    changes: Partial<VerificationSources> = {},
    options?: VerificationOptions,
  ): Promise<Verification> =>
    verifyCredential(credential as JsonObject, fakeSources(issuer, changes), options);
  const outcomes = ({ documentIntegrity, issuerIdentity, documentStatus }: Verification): string[] =>
    [documentIntegrity, issuerIdentity, documentStatus].map(({ outcome }) => outcome);
  const failures = ({ checks }: Answer): string =>
    checks
      .flatMap(({ check, outcome, found }) => (outcome === 'valid' ? [] : [`${check}: ${found}`]))
      .join('; ');
  const subjectOf = (credential: JsonObject): JsonObject => credential.credentialSubject as JsonObject;
  const withSubject = (changes: JsonObject): JsonObject => ({
    ...derived,
    credentialSubject: { ...subjectOf(derived), ...changes },
  });

  describe('the document', () => {
    it('is valid as the issuer gave it out, and as the holder derived it', async () => {
      for (const credential of [base, derived]) {
        const verification = await verify(credential);
        expect(outcomes(verification)).to.deep.equal(['valid', 'valid', 'valid']);
        expect(verification.outcome).to.equal('valid');
        expect(subjectOf(verification.shown ?? {})).to.deep.equal(subjectOf(base));
      }
    });

    it('shows only what is to be revealed, and what is mandatory', async () => {
      const { shown, outcome } = await verify(base, {}, { reveal: ['/credentialSubject/blNumber'] });
      expect(outcome).to.equal('valid');
      expect(subjectOf(shown ?? {})).to.deep.equal({ type: ['BillOfLading'], blNumber: 'SGCNM21566325' });
      expect(shown).to.include.keys('issuer', 'validFrom', 'validUntil', 'credentialStatus', 'id', 'type');
    });

    for (const [name, change] of Object.entries<(credential: JsonObject) => JsonObject>({
      'a changed value': (it) => ({ ...it, credentialSubject: { ...subjectOf(it), scac: 'XXXX' } }),
      'an added value': (it) => ({ ...it, credentialSubject: { ...subjectOf(it), vessel: 'Ever Given' } }),
      'a value left out': (it) => ({ ...it, credentialSubject: { type: ['BillOfLading'], scac: 'SGPU' } }),
      'an undefined term': (it) => ({ ...it, credentialSubject: { ...subjectOf(it), nonsense: 1 } }),
      'another status': (it) => ({
        ...it,
        credentialStatus: { ...(it.credentialStatus as object), tokenId: 'ab'.repeat(32) },
      }),
      'the status removed': (it) => ({ ...it, credentialStatus: undefined }),
      'an end that was put off': (it) => ({ ...it, validUntil: '2036-01-01T00:00:00.000Z' }),
      'another id': (it) => ({ ...it, id: 'urn:uuid:01937b4a-0000-7000-8000-00000000000f' }),
      'another date of the proof': (it) => ({
        ...it,
        proof: { ...(it.proof as object), created: '2025-01-01T00:00:00Z' },
      }),
    })) {
      it(`is invalid with ${name}, in either form`, async () => {
        for (const credential of [base, derived])
          expect((await verify(change(credential))).documentIntegrity.outcome).to.equal('invalid');
      });
    }

    it('is invalid without a proof, or with one that says nothing', async () => {
      for (const proof of [undefined, null, [], 'x', {}, { ...(base.proof as object), proofValue: 'zzz' }]) {
        const { documentIntegrity } = await verify({ ...base, proof });
        expect(documentIntegrity.outcome, JSON.stringify(proof)).not.to.equal('valid');
      }
      expect((await verify({ ...base, proof: undefined })).documentIntegrity.outcome).to.equal('invalid');
    });

    it('cannot be judged when its proof is of another kind, which is named', async () => {
      const proof = { ...(base.proof as object), cryptosuite: 'bbs-2023' };
      const { documentIntegrity } = await verify({ ...base, proof });
      expect(documentIntegrity.outcome).to.equal('could not tell');
      expect(failures(documentIntegrity)).to.contain('DataIntegrityProof, bbs-2023');
      const several = await verify({ ...base, proof: [base.proof, base.proof] });
      expect(failures(several.documentIntegrity)).to.contain('2 proofs');
    });

    it('is invalid with a package shown twice, though the library verifies it', async () => {
      const signed = await issuer.sign({ type: ['BillOfLading'], packages: [{ packagesWeight: '1 t' }] });
      const shown = await derive({ ...signed }, ['']);
      expect((await verify(shown)).outcome).to.equal('valid');
      const twice = { ...subjectOf(shown), packages: [{ packagesWeight: '1 t' }, { packagesWeight: '1 t' }] };
      const forged = await forgeProof(
        shown as unknown as SignedCredential,
        { ...shown, credentialSubject: twice },
        true,
      );
      const { documentIntegrity } = await verify(forged);
      expect(documentIntegrity.outcome).to.equal('invalid');
      expect(failures(documentIntegrity)).to.contain('uses a signed statement more than once');
    });

    it('cannot be judged where it holds what no signature covers, though the library verifies it', async () => {
      const signed = await issuer.sign({ type: ['BillOfLading'], scac: 'SGPU', blNumber: 'PO_:123' });
      const shown = await derive({ ...signed }, ['']);
      const forged = { ...shown, credentialSubject: { ...subjectOf(shown), blNumber: 'PO_:666' } };
      for (const credential of [forged, withSubject(JSON.parse('{"__proto__": "x"}') as JsonObject)]) {
        const { documentIntegrity } = await verify(credential);
        const signature = documentIntegrity.checks.find(({ check }) => check === 'signature');
        expect(signature?.outcome).to.equal('valid');
        expect(documentIntegrity.outcome).to.equal('could not tell');
        expect(failures(documentIntegrity)).to.match(/^covered by the signature: \/credentialSubject\//);
      }
    });

    it('is never asked for more than it shows', async () => {
      const error = await verify(derived, {}, { reveal: ['/credentialSubject'] }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).to.have.property('code', 'CREDENTIAL_ALREADY_DERIVED');
    });
  });

  describe('the contexts', () => {
    const EVIL = 'https://evil.example/swapped.json';
    const swapped = {
      scac: 'https://example.com/terms#blNumber',
      blNumber: 'https://example.com/terms#scac',
    };
    const context = {
      '@context': {
        '@protected': true,
        BillOfLading: { '@id': 'https://example.com/terms#BillOfLading', '@context': swapped },
      },
    };
    const serving =
      (json: unknown): ((url: URL) => Promise<FetchedJson>) =>
      async (url) => ({ kind: 'json', url: url.href, contentType: 'application/json', json });
    const under = (url: unknown): JsonObject => ({
      ...derived,
      '@context': [...(derived['@context'] as unknown[]).slice(0, -1), url],
    });
    const exchanged = (url: unknown): JsonObject => ({
      ...under(url),
      credentialSubject: { type: ['BillOfLading'], scac: 'SGCNM21566325', blNumber: 'SGPU' },
    });

    it('of a stranger may exchange labels under a good signature: that is not VALID', async () => {
      const verification = await verify(exchanged(EVIL), { fetchJson: serving(context) });
      expect(verification.contextsFetched).to.deep.equal([EVIL]);
      expect(failures(verification.documentIntegrity)).to.match(/^meaning of the terms: .*evil\.example/);
      expect(verification.documentIntegrity.outcome).to.equal('could not tell');
      const inline = await verify(exchanged(context['@context']));
      expect(inline.documentIntegrity.outcome).to.equal('could not tell');
      expect(failures(inline.documentIntegrity)).to.contain('/@context/5 defines terms in place');
    });

    it('of a stranger are taken when the user knows them', async () => {
      const verification = await verify(
        under(EVIL),
        { fetchJson: serving((await createDocumentLoader(EVIL)(EVIL)).document) },
        { trustedContexts: [EVIL] },
      );
      expect(verification.outcome).to.equal('valid');
    });

    it("of the issuer's own domain are fetched and taken", async () => {
      const known = createDocumentLoader('https://verifier.example/contexts/bill-of-lading-v1.json');
      const own = (await createDocumentLoader(issuer.contextUrl)(issuer.contextUrl)).document;
      const verification = await verify(derived, { knownContexts: known, fetchJson: serving(own) });
      expect(verification.contextsFetched).to.deep.equal([issuer.contextUrl]);
      expect(verification.outcome).to.equal('valid');
    });

    it("are not the publisher's where a redirect leads away, a query decides, or a service answers for anybody", async () => {
      const redirected: VerificationSources['fetchJson'] = async (url) =>
        serving(context)(new URL(url.pathname === '/go' ? EVIL : url.href));
      for (const url of [
        'https://issuer.example/go',
        'https://issuer.example/echo?json=x',
        'https://www.w3.org/services/html2txt',
        'https://www.w3.org/ns/../services/html2txt',
      ]) {
        const { documentIntegrity } = await verify(exchanged(url), { fetchJson: redirected });
        expect(documentIntegrity.outcome, url).to.equal('could not tell');
        expect(failures(documentIntegrity)).to.match(/^meaning of the terms: [^;]*$/);
      }
      const overPlainHttp: VerificationSources['fetchJson'] = async () =>
        serving(context)(new URL('http://issuer.example/c.json'));
      const local = await verify(exchanged('https://issuer.example/c.json'), { fetchJson: overPlainHttp });
      expect(failures(local.documentIntegrity)).to.equal('');
      const moved = await verify(exchanged('https://issuer.example/go'), { fetchJson: redirected });
      expect(failures(moved.documentIntegrity)).to.contain(`/go, found at ${EVIL}`);
    });

    it('that are known are not asked for', async () => {
      const sources = fakeSources(issuer, { fetchJson: serving(context) });
      expect((await verifyCredential(derived, sources)).outcome).to.equal('valid');
      expect(sources.asked).to.deep.equal([]);
    });

    it('that cannot be had leave the document unjudged, each asked for once', async () => {
      const sources = fakeSources(issuer, {
        knownContexts: createDocumentLoader('https://verifier.example/c.json'),
        fetchJson: async () => NOBODY,
      });
      for (const credential of [base, derived]) {
        sources.asked.length = 0;
        const { documentIntegrity } = await verifyCredential(credential, sources);
        expect(documentIntegrity.outcome).to.equal('could not tell');
        expect(failures(documentIntegrity)).to.contain('cannot be reached');
        expect(sources.asked).to.deep.equal([issuer.contextUrl]);
      }
    });

    it('that name more and more of them are given up, also where a term brings one', async () => {
      const names = Array.from({ length: 100 }, (_, index) => `a${index}`);
      const scoped = names.map((name): [string, object] => {
        const terms = {
          '@id': `https://evil.example/#${name}`,
          '@context': `https://evil.example/${name}.json`,
        };
        return [name, terms];
      });
      const fetchJson: VerificationSources['fetchJson'] = async (url) =>
        serving({ '@context': url.href === EVIL ? Object.fromEntries(scoped) : {} })(url);
      const sources = fakeSources(issuer, { fetchJson });
      const members = Object.fromEntries(names.map((name) => [name, { name: 'x' }]));
      const credential = { ...derived, ...members, '@context': [...(derived['@context'] as string[]), EVIL] };
      const { documentIntegrity } = await verifyCredential(credential, sources);
      expect(documentIntegrity.outcome).to.equal('could not tell');
      expect(failures(documentIntegrity)).to.contain('More than 30 contexts would have to be fetched');
      expect(sources.asked).to.have.lengthOf(30);
    });

    it('that are no contexts leave it unjudged', async () => {
      for (const json of [{}, [], null, 'x', 7]) {
        const knownContexts = createDocumentLoader('https://verifier.example/c.json');
        const { documentIntegrity } = await verify(derived, { knownContexts, fetchJson: serving(json) });
        expect(documentIntegrity.outcome, JSON.stringify(json)).to.equal('could not tell');
      }
    });
  });

  describe('the issuer', () => {
    const answers = async (document: object): Promise<string[]> => {
      const resolveDid: VerificationSources['resolveDid'] = async (did) =>
        resolved(did, { ...issuer.didDocument, ...document });
      return outcomes(await verify(derived, { resolveDid }));
    };

    it('is found with an id inside of an object, and with identifiers relative to the DID', async () => {
      const named = await issuer.sign(undefined, { issuer: { id: issuer.did } as unknown as string });
      expect((await verify(named)).outcome).to.equal('valid');
      const [method] = issuer.didDocument.verificationMethod;
      const relative = { verificationMethod: [{ ...method, id: '#keys-1' }], assertionMethod: ['#keys-1'] };
      expect(await answers(relative)).to.deep.equal(['valid', 'valid', 'valid']);
      const embedded = { verificationMethod: [], assertionMethod: [method] };
      expect(await answers(embedded)).to.deep.equal(['valid', 'valid', 'valid']);
    });

    it('is wrong when the domain publishes no such DID; then the signature is not judged', async () => {
      const resolveDid: VerificationSources['resolveDid'] = async () => ({
        ...NOBODY,
        kind: 'refused',
        problem: 'answers 404',
      });
      expect(outcomes(await verify(derived, { resolveDid }))).to.deep.equal([
        'could not tell',
        'invalid',
        'valid',
      ]);
    });

    it('is not judged when the domain does not answer', async () => {
      const verification = await verify(derived, { resolveDid: async () => NOBODY });
      expect(outcomes(verification)).to.deep.equal(['could not tell', 'could not tell', 'valid']);
    });

    it('is wrong when the key is not in the document, is not for this purpose, or is of another controller', async () => {
      const [method] = issuer.didDocument.verificationMethod;
      const wrong = ['could not tell', 'invalid', 'valid'];
      expect(await answers({ verificationMethod: [] })).to.deep.equal(wrong);
      expect(await answers({ assertionMethod: [] })).to.deep.equal(wrong);
      expect(await answers({ assertionMethod: undefined })).to.deep.equal(wrong);
      const controlled = { verificationMethod: [{ ...method, controller: 'did:web:evil.example' }] };
      expect(await answers(controlled)).to.deep.equal(wrong);
    });

    it('is wrong with a key that was revoked or has expired, also at a moment that cannot be read', async () => {
      const [method] = issuer.didDocument.verificationMethod;
      const ending = async (end: object): Promise<string[]> =>
        answers({ verificationMethod: [{ ...method, ...end }] });
      for (const name of ['revoked', 'expires']) {
        for (const moment of ['2026-01-15T00:00:00Z', 'yesterday', true, ['2027-01-01T00:00:00Z']])
          expect(await ending({ [name]: moment }), `${name} ${String(moment)}`).to.deep.equal([
            'could not tell',
            'invalid',
            'valid',
          ]);
        expect(await ending({ [name]: '2027-01-01T00:00:00Z' })).to.deep.equal(['valid', 'valid', 'valid']);
      }
    });

    it('is not judged with a key of another kind, nor does one without end hold it up', async () => {
      const [method] = issuer.didDocument.verificationMethod;
      const notJudged = ['could not tell', 'could not tell', 'valid'];
      for (const publicKeyMultibase of [
        'z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK',
        `zDna${'2'.repeat(1_000_000)}`,
        '',
        7,
      ])
        expect(await answers({ verificationMethod: [{ ...method, publicKeyMultibase }] })).to.deep.equal(
          notJudged,
        );
      const jwk = { verificationMethod: [{ ...method, type: 'JsonWebKey' }] };
      expect(await answers(jwk)).to.deep.equal(notJudged);
    });

    it('is wrong when somebody else signed, whose own DID would resolve', async () => {
      const other = await createTestIssuer('evil.example');
      const signed = await other.sign(undefined, { issuer: issuer.did });
      const knownContexts = createDocumentLoader(other.contextUrl);
      const verification = await verify(signed, { knownContexts });
      expect(failures(verification.issuerIdentity)).to.contain('somebody else signed');
      expect(verification.issuerIdentity.outcome).to.equal('invalid');
    });

    it("has the document's signature fail when the DID document has another key under the same name", async () => {
      const other = await createTestIssuer();
      expect(await answers(other.didDocument)).to.deep.equal(['invalid', 'valid', 'valid']);
    });

    it('is not judged when it is no did:web, and is wrong when it is none at all', async () => {
      expect((await verify({ ...derived, issuer: 'did:key:z6Mk' })).issuerIdentity.outcome).to.equal(
        'could not tell',
      );
      for (const bad of [undefined, null, 7, {}, [], 'did:web:', 'did:web:a%2Fb'])
        expect((await verify({ ...derived, issuer: bad })).issuerIdentity.outcome).to.equal('invalid');
    });
  });

  describe('the status', () => {
    const status = async (
      changes: Partial<VerificationSources>,
      credential: JsonObject = derived,
    ): Promise<Answer> => (await verify(credential, changes)).documentStatus;
    const inState = (state: object) => status({ readToken: async () => ({ ...IN_ESCROW, ...state }) });

    it('is valid in escrow, returned to the issuer, and while the registry is paused, which is said', async () => {
      for (const [state, text] of [
        [{}, 'in its title escrow'],
        [{ state: 'returned to issuer' }, 'nobody can transfer it now'],
        [{ isPaused: true }, 'paused'],
      ] as const) {
        const answer = await inState(state);
        expect(answer.outcome).to.equal('valid');
        expect(JSON.stringify(answer.checks)).to.contain(text);
      }
    });

    it('is invalid when shredded, never minted, without a registry, or with a contract that is none', async () => {
      expect((await inState({ state: 'shredded' })).outcome).to.equal('invalid');
      expect((await inState({ state: 'not minted' })).outcome).to.equal('invalid');
      expect((await status({ readToken: failingWith('REGISTRY_MISSING') })).outcome).to.equal('invalid');
      expect((await status({ readToken: failingWith('REGISTRY_INVALID') })).outcome).to.equal('invalid');
    });

    it("is not judged when the node cannot be asked, and no library's text is shown, which may hold its key", async () => {
      for (const code of [
        'RPC_UNREACHABLE',
        'NETWORK_UNKNOWN',
        'CONFIGURATION_INVALID',
        'TOKEN_OWNER_UNEXPECTED',
      ])
        expect((await status({ readToken: failingWith(code) })).outcome, code).to.equal('could not tell');
      const readToken: VerificationSources['readToken'] = async () => {
        throw Object.assign(new Error('https://node.example/v3/secret'), { code: 'SERVER_ERROR' });
      };
      const answer = await status({ readToken });
      expect(answer.outcome).to.equal('could not tell');
      expect(JSON.stringify(answer)).to.contain('SERVER_ERROR').and.not.to.contain('secret');
    });

    it('is not judged when it is hidden, of another type, several, or of another document', async () => {
      const own = derived.credentialStatus as JsonObject;
      for (const credentialStatus of [
        undefined,
        { type: 'BitstringStatusListEntry' },
        [own, own],
        { ...own, tokenId: 'ab'.repeat(32) },
      ])
        expect((await status({}, { ...derived, credentialStatus })).outcome).to.equal('could not tell');
    });

    it('is invalid when it names no token that there could be', async () => {
      for (const credentialStatus of [null, 'x', {}, { type: 'TransferableRecords', tokenRegistry: '0x1' }])
        expect((await status({}, { ...derived, credentialStatus })).outcome).to.equal('invalid');
    });

    it('is invalid before and after the valid period, five minutes of difference between clocks apart', async () => {
      const at = async (time: string): Promise<string> =>
        (await status({ clock: { now: () => Date.parse(time) } })).outcome;
      expect(await at('2025-12-31T23:54:00Z')).to.equal('invalid');
      expect(await at('2025-12-31T23:56:00Z')).to.equal('valid');
      expect(await at('2026-04-01T00:04:00Z')).to.equal('valid');
      expect(await at('2026-04-01T00:06:00Z')).to.equal('invalid');
    });

    it('is not judged without the end of the period, which may be hidden', async () => {
      for (const credential of [base, derived])
        expect((await status({}, { ...credential, validUntil: undefined })).outcome).to.equal(
          'could not tell',
        );
      expect((await status({}, { ...derived, validUntil: 'tomorrow' })).outcome).to.equal('could not tell');
    });
  });
});
