import { expect } from 'chai';
import { ConfigurationError, RequestError, type ServiceError, SigningError } from '../../service/base/errors';
import type { JsonObject } from '../../service/issuance/credential';
import { parseBody } from '../../service/issuance/parse-body';
import { createDocumentPreparer, type PrepareDocument } from '../../service/issuance/prepare-document';
import { decryptRemark } from '../../service/issuance/remarks';
import type { SignedCredential } from '../../service/issuance/sign';
import full from '../fixtures/bill-of-lading-full.json';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { bodyWith, HOLDER, OWNER, preparationOf, settingsOf } from '../helpers/credentials/preparations';
import { statementsOf, withoutProof } from '../helpers/credentials/statements';
import { createTestIssuer, TEST_REGISTRY, type TestIssuer } from '../helpers/credentials/test-issuer';

describe('preparing a document', () => {
  let issuer: TestIssuer;
  let prepare: PrepareDocument;

  before(async () => {
    issuer = await createTestIssuer();
    prepare = await createDocumentPreparer(settingsOf(issuer));
  });

  const documentOf = async (body: string, number = 0): Promise<SignedCredential> => {
    const { document } = await prepare(preparationOf(body, number));
    return JSON.parse(Buffer.from(document).toString('utf8')) as SignedCredential;
  };

  async function refusalOf(body: string | Uint8Array<ArrayBuffer>): Promise<ServiceError> {
    try {
      await prepare(preparationOf(body));
    } catch (error) {
      return error as ServiceError;
    }
    throw new Error('it was prepared');
  }

  it('signs the content of the body as a credential that a verifier accepts', async () => {
    const { proof, ...credential } = await documentOf(bodyWith(full.credentialSubject), 7);
    expect(credential).to.deep.include({
      id: 'urn:uuid:01937b4a-0000-7000-8000-000000000007',
      issuer: issuer.did,
      validFrom: '2026-01-31T12:00:00.000Z',
      validUntil: '2026-04-30T12:00:00.000Z',
      credentialSubject: full.credentialSubject,
      renderMethod: [
        { id: 'https://renderer.example', type: 'EMBEDDED_RENDERER', templateName: 'BILL_OF_LADING' },
      ],
    });
    expect(credential.credentialStatus).to.deep.include({
      tokenNetwork: { chain: 'ETH', chainId: '31337' },
      tokenRegistry: TEST_REGISTRY,
    });
    expect(proof).to.include({
      created: '2026-01-31T12:00:00Z',
      verificationMethod: `${issuer.did}#keys-1`,
    });
    const derived = await derive({ ...credential, proof }, ['/credentialSubject']);
    expect((await verify(derived, issuer.didDocument)).verified).to.equal(true);
  });

  it('returns the beginning of the number, without characters that a database refuses', async () => {
    const numberIn = async (blNumber: unknown): Promise<string | undefined> =>
      (await prepare(preparationOf(bodyWith({ ...full.credentialSubject, blNumber })))).blNumber;
    expect(await numberIn('A-1')).to.equal('A-1');
    expect(await numberIn(`A\u0000${'1'.repeat(200)}`)).to.equal(`A${'1'.repeat(98)}`);
    expect(await numberIn(`${'1'.repeat(99)}🚢`)).to.equal('1'.repeat(99));
    expect(await numberIn(['A-1', 'A-2'])).to.equal(undefined);
  });

  it("returns the mint's token id, beneficiary, holder and encrypted remark", async () => {
    const prepared = await prepare(preparationOf(bodyWith({}, { remarks: 'Grüße' })));
    const { credentialStatus, id } = await documentOf(bodyWith());
    expect(prepared).to.include({
      credentialId: id,
      tokenId: credentialStatus.tokenId,
      beneficiary: OWNER,
      holder: HOLDER,
    });
    expect(prepared.tokenId).to.match(/^[0-9a-f]{64}$/);
    expect(decryptRemark(prepared.remark, id)).to.deep.equal({ kind: 'text', text: 'Grüße' });
    expect((await prepare(preparationOf(bodyWith()))).remark).to.equal('0x');
  });

  it('returns bytes that fill their buffer, so that a thread can transfer it', async () => {
    const { document } = await prepare(preparationOf(bodyWith()));
    expect(document.byteLength).to.equal(document.buffer.byteLength);
  });

  const NOT_JSON = 'The body is not a valid JSON object.';
  for (const [what, body, message] of [
    ['an empty text', '', NOT_JSON],
    ['broken JSON', '{"owner":', NOT_JSON],
    ['a list', '[{}]', NOT_JSON],
    ['a string', '"owner"', NOT_JSON],
    ['null', 'null', NOT_JSON],
    ['invalid UTF-8', Uint8Array.from([...Buffer.from('{"owner":"'), 0xff, ...Buffer.from('"}')]), NOT_JSON],
    ['a truncated character', Uint8Array.from(Buffer.from('{"a":"é').subarray(0, -1)), NOT_JSON],
    [
      'an object with an escaped __proto__ key',
      '{"credentialSubject":{"packages":[{"\\u005f_proto__":1}]}}',
      'The body is not a valid JSON object: a key is "__proto__".',
    ],
  ] as const) {
    it(`refuses ${what} as the body`, async () => {
      const refusal = await refusalOf(body);
      expect(refusal).to.be.instanceOf(RequestError);
      expect(refusal).to.include({ code: 'BODY_NOT_JSON', message, retryable: false });
    });
  }

  for (const [what, body, ErrorClass, code, message] of [
    ['an invalid owner', bodyWith({}, { owner: '0x1' }), RequestError, 'REQUEST_FIELD_INVALID', /^\/owner /],
    [
      'a remark that UTF-8 cannot write',
      bodyWith({}, { remarks: 'half \ud83d' }),
      RequestError,
      'REQUEST_FIELD_INVALID',
      /^\/remarks contains half of a surrogate pair/,
    ],
    [
      'text that a signature would not protect',
      bodyWith({ vessel: 'PO_:1' }),
      RequestError,
      'TEXT_NOT_PROTECTED',
      /^\/credentialSubject\/vessel contains "_:"/,
    ],
    [
      'a term that no context defines',
      bodyWith({ vesel: 'x' }),
      SigningError,
      'SUBJECT_TERM_UNDEFINED',
      /^credentialSubject: "vesel" is not defined/,
    ],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const refusal = await refusalOf(body);
      expect(refusal).to.be.instanceOf(ErrorClass);
      expect(refusal.code).to.equal(code);
      expect(refusal.message).to.match(message);
    });
  }

  /** Subjects, and whether a signed credential would have a statement about them. */
  const CLAIMS: [JsonObject, boolean][] = [
    [{}, false],
    [{ id: 'urn:x:1' }, false],
    [{ type: [] }, false],
    [{ id: 'urn:x:1', attachments: [], description: null, name: [null] }, false],
    [{ type: 'BillOfLading' }, true],
    [{ type: ['BillOfLading'], packages: [], vessel: null }, true],
    [{ name: '' }, true],
    [{ attachments: {} }, true],
    [{ attachments: [null, {}] }, true],
  ];
  for (const [credentialSubject, isStated] of CLAIMS)
    it(`${isStated ? 'signs' : 'refuses'} the subject ${JSON.stringify(credentialSubject)}`, async () => {
      const signed = await issuer.sign(credentialSubject);
      const statements = (await statementsOf(withoutProof(signed), issuer.contextUrl)) ?? [];
      const about = / \S+#credentialSubject> (\S+) \.$/m.exec(statements.join('\n'))?.[1];
      expect(statements.some((statement) => statement.startsWith(`${about} `))).to.equal(isStated);
      const body = JSON.stringify({ credentialSubject, owner: OWNER, holder: HOLDER });
      const code = await prepare(preparationOf(body)).then(
        () => 'signed',
        (error: unknown) => (error as ServiceError).code,
      );
      expect(code).to.equal(isStated ? 'signed' : 'SUBJECT_EMPTY');
    });

  it('refuses more than 20,000 values, which would take minutes to sign', async () => {
    const bodyOfValues = (count: number): Uint8Array =>
      new TextEncoder().encode(`{"a":[${'"",'.repeat(count - 2)}""]}`);
    expect(parseBody(bodyOfValues(20_000))).to.have.property('a');
    expect(() => parseBody(bodyOfValues(20_001)))
      .to.throw(RequestError)
      .with.property('code', 'BODY_TOO_COMPLEX');
  });

  it('refuses too many values before parsing, and does not count values inside strings', async () => {
    const many = '[],'.repeat(300_000);
    const refusal = await refusalOf(`{"a":[${many}1],"b":"\\"}`);
    expect(refusal).to.include({ code: 'BODY_TOO_COMPLEX' });
    const texts = { vessel: `"${many}`, voyageNo: `\\" ${many}`, links: '\\' };
    expect((await documentOf(bodyWith(texts))).credentialSubject).to.include(texts);
  });

  for (const [what, subject] of [
    [
      'a long id that every statement would repeat',
      { id: `urn:x:${'y'.repeat(100_000)}`, links: texts(1_000) },
    ],
    ['characters that become six in a statement', { vessel: '\u007f'.repeat(15_000_000) }],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const refusal = await refusalOf(bodyWith(subject));
      expect(refusal).to.include({ code: 'BODY_TOO_COMPLEX' });
      expect(refusal.message).to.match(/^\/credentialSubject /);
    });
  }

  it('ignores a byte order mark', async () => {
    expect((await documentOf(`\ufeff${bodyWith()}`)).issuer).to.equal(issuer.did);
  });

  it('reports a damaged key pair without printing it', async () => {
    const keyPair = { ...issuer.keyPair, secretKeyMultibase: issuer.keyPair.secretKeyMultibase.slice(0, -3) };
    const refusal = await createDocumentPreparer({ ...settingsOf(issuer), keyPair }).catch(
      (error: unknown) => error as ServiceError,
    );
    expect(refusal).to.be.instanceOf(ConfigurationError);
    expect((refusal as ServiceError).message).to.match(/^DID_KEY_PAIRS is damaged/);
    expect((refusal as ServiceError).message).not.to.contain(keyPair.secretKeyMultibase);
  });
});

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index));
}
