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
import { errorOf } from '../helpers/error-of';
import { statementsOf, withoutProof } from '../helpers/credentials/statements';
import { createTestIssuer, TEST_REGISTRY, type TestIssuer } from '../helpers/credentials/test-issuer';

const packages = Array.from({ length: 300 }, (_, index) => ({
  packagesDescription: `Paket № ${index} 包裹`,
  packagesWeight: `${index} KG`,
  packagesMeasurement: '',
}));

describe('preparing a document', () => {
  let issuer: TestIssuer;
  let prepare: PrepareDocument;

  before(async () => {
    issuer = await createTestIssuer();
    prepare = createDocumentPreparer(settingsOf(issuer));
  });

  const documentOf = async (body: string, number = 0): Promise<SignedCredential> => {
    const { document } = await prepare(preparationOf(body, number));
    return JSON.parse(Buffer.from(document).toString('utf8')) as SignedCredential;
  };

  const refusalOf = (body: string | Uint8Array<ArrayBuffer>): Promise<ServiceError> =>
    errorOf(prepare(preparationOf(body)));

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

  it("returns the mint's token id, owner, holder and encrypted remark", async () => {
    const prepared = await prepare(preparationOf(bodyWith({}, { remarks: 'Grüße' })));
    const { credentialStatus, id } = await documentOf(bodyWith());
    expect(prepared).to.include({
      credentialId: id,
      tokenId: credentialStatus.tokenId,
      owner: OWNER,
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

  const HAS_PROTOTYPE = 'a key is "__proto__"';
  const NOT_UTF8 = 'line 1, column 11: it is not text in UTF-8';
  for (const [what, body, problem] of [
    ['an empty text', '', 'it is empty'],
    ['broken JSON', '{"owner":', 'line 1, column 10: a value is expected'],
    ['a trailing comma', '{"owner":\n1,}', 'line 2, column 3: a name in double quotes is expected'],
    ['a list', '[{}]', 'it is an array'],
    ['a string', '"owner"', 'it is a string'],
    ['null', 'null', 'it is null'],
    ['UTF-16', Uint8Array.from(Buffer.from('{}', 'utf16le')), 'it is in UTF-16; write it in UTF-8'],
    ['invalid UTF-8', Uint8Array.from([...Buffer.from('{"owner":"'), 0xff, ...Buffer.from('"}')]), NOT_UTF8],
    ['a truncated character', Uint8Array.from(Buffer.from('{"a":"bcdeé').subarray(0, -1)), NOT_UTF8],
    ['an escaped __proto__ key', '{"credentialSubject":{"packages":[{"\\u005f_proto__":1}]}}', HAS_PROTOTYPE],
    ['a __proto__ in deeply nested lists', `{"a":${nested('[', '{"__proto__":null}', ']')}}`, HAS_PROTOTYPE],
  ] as const) {
    it(`refuses ${what} as the body`, async () => {
      const refusal = await refusalOf(body);
      expect(refusal).to.be.instanceOf(RequestError);
      const message = `The body is not a valid JSON object: ${problem}.`;
      expect(refusal).to.include({ code: 'BODY_NOT_JSON', message, retryable: false });
    });
  }

  for (const [others, message] of [
    [{ owner: '0x1' }, /^\/owner /],
    [{ remarks: 'half \ud83d' }, /^\/remarks contains half of a surrogate pair/],
  ] as const)
    it(`refuses the member ${JSON.stringify(others)}`, async () => {
      const refusal = await refusalOf(bodyWith({}, others));
      expect(refusal).to.be.instanceOf(RequestError).and.include({ code: 'REQUEST_FIELD_INVALID' });
      expect(refusal.message).to.match(message);
    });

  const SIGNED: [what: string, subject: string][] = [
    ['all twenty terms with non-ASCII text', JSON.stringify(full.credentialSubject)],
    ['300 packages', JSON.stringify({ ...full.credentialSubject, packages })],
    ['empty strings', billWith('"scac":"","blNumber":"","links":"","packages":[{"packagesWeight":""}]')],
    ['a type that is a string', '{"type":"BillOfLading","vessel":"x"}'],
    ['a second type that is a URL', '{"type":["BillOfLading","https://carrier.example/Bill"],"vessel":"x"}'],
    ['an id', billWith('"id":"did:web:carrier.example","vessel":"x"')],
    ['several values where one is expected', billWith('"links":["https://a.example","https://b.example"]')],
    ['an object where a string is expected', billWith('"vessel":{"name":"Ever Given","description":"x"}')],
    ['a string where objects are expected', billWith('"packages":["3 cartons"]')],
    ['null, empty lists and empty objects', billWith('"vessel":null,"links":[],"packages":[{},null]')],
    [
      'numbers and truth values',
      billWith('"vessel":1.5,"voyageNo":-7,"scac":true,"blNumber":9007199254740991'),
    ],
    [
      'two packages that are the same',
      billWith('"packages":[{"packagesWeight":"1"},{"packagesWeight":"1"}]'),
    ],
    [
      'quotes, backslashes and line ends',
      billWith(String.raw`"vessel":"\"\\ \r\n\t\b\f\u2028 .\n<a:b> <c:d> \"e"`),
    ],
    ['control characters', billWith(String.raw`"vessel":"\u0000\u0001\u001f\u007f\u0085\ufeff\uffff"`)],
    ['text from right to left', billWith('"vessel":"\u202eסוף \u2066نص\u2069 \u200f"')],
    ['accents in two forms', billWith('"vessel":"\u00e9","scac":"e\u0301"')],
    ['a string of a megabyte', billWith(`"vessel":"${'🚢x'.repeat(250_000)}"`)],
    ['two million line ends', billWith(`"vessel":"${'\\n'.repeat(2_000_000)}"`)],
  ];
  for (const [what, subject] of SIGNED)
    it(`signs ${what}; the derived credential verifies and shows the same subject`, async () => {
      const derived = await derive(await documentOf(bodyOf(subject)), [
        '/credentialSubject',
        '/renderMethod',
      ]);
      expect(await verify(derived, issuer.didDocument)).to.include({ verified: true });
      expect(derived.credentialSubject).to.deep.equal(JSON.parse(subject));
    });

  const REFUSED: Record<string, [subject: string, reason: string][]> = {
    TEXT_NOT_PROTECTED: [
      [billWith('"vessel":"PO_:1"'), 'vessel contains "_:"'],
      [billWith('"id":"did:web:issuer.example"'), 'id is also the id of another object'],
      [deep('[', ']'), 'vessel/0 is a list in a list'],
    ],
    SUBJECT_VALUE_INVALID: [
      [deep('{"name":', '}'), 'nested deeper than 100'],
      [billWith('"blNumber":1e400'), 'blNumber is a number'],
    ],
    SUBJECT_TERM_UNDEFINED: [
      ['{"blNumber":"1"}', 'blNumber is the term "blNumber", which https:'],
      [billWith('"vesel":"x"'), '"vesel", which no context'],
      [billWith('"paid":null'), '"paid", which no context'],
      [billWith('"vessel":{"packagesWeight":"1"}'), '"packagesWeight"'],
      ['{"type":["Bill"]}', 'Bill'],
      [billWith('"constructor":{"prototype":{"a":"1"}}'), '"constructor", which no'],
      [billWith('"hasOwnProperty":"1"'), '"hasOwnProperty", which no'],
      [billWith('"":"1"'), '"", which no context'],
      [billWith('"id":"x"'), 'id must be an absolute IRI'],
      ['{"type":["BillOfLading",-9]}', '["BillOfLading",-9]'],
      ['{"type":["BillOfLading",{"a":"1"}]}', '"@type" value must'],
      [billWith('"id":7'), '"@id" value must'],
    ],
  };
  for (const [code, rows] of Object.entries(REFUSED))
    for (const [subject, reason] of rows)
      it(`refuses a subject: ${code}, ${reason}`, async () => {
        const refusal = await refusalOf(bodyOf(subject));
        expect(refusal).to.be.instanceOf(code === 'SUBJECT_TERM_UNDEFINED' ? SigningError : RequestError);
        expect(refusal.code).to.equal(code);
        expect(refusal.message)
          .to.match(/^\/?credentialSubject/)
          .and.contain(reason);
      });

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
      const code = await prepare(preparationOf(bodyOf(JSON.stringify(credentialSubject)))).then(
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

  it('refuses a name that occurs twice, with its pointer, also behind 6 MB of text', async () => {
    const attachment = `"attachments":[{"data":"${'{\\"},'.repeat(1_000_000)}","x":1,"x":2}]`;
    const body = bodyWith().replace('"scac"', `${attachment},"scac"`);
    const refusal = await errorOf(prepare(preparationOf(body)));
    expect(refusal).to.include({ code: 'BODY_AMBIGUOUS' });
    expect(refusal.message).to.match(/^\/credentialSubject\/attachments\/0\/x occurs twice/);
  });

  it('refuses ids that are long when statements repeat them, and characters that become six', async () => {
    const links = Array.from({ length: 19_900 }, (_, index) => String(index));
    for (const subject of [
      { id: `urn:x:${'y'.repeat(2_000)}`, links, vessel: 'z'.repeat(20_000_000) },
      { links: Array.from({ length: 12 }, () => '\u007f'.repeat(1_250_000)) },
    ]) {
      const refusal = await refusalOf(bodyWith(subject));
      expect(refusal).to.include({ code: 'BODY_TOO_COMPLEX' });
      expect(refusal.message).to.match(/^\/credentialSubject /);
    }
  });

  it('refuses a text with more escaped characters than libraries read, and says which', async () => {
    for (const one of ['\n', '"', '\\', '\u007f', '\u0001', '{"a:']) {
      const refusal = await refusalOf(
        bodyWith({ packages: [{ packagesDescription: one.repeat(2_000_001) }] }),
      );
      expect(refusal, JSON.stringify(one)).to.include({ code: 'BODY_TOO_COMPLEX' });
      expect(refusal.message).to.match(
        /^\/credentialSubject\/packages\/0\/packagesDescription has more than/,
      );
    }
  });

  it('refuses a list of long texts that libraries would compare for minutes', async () => {
    const links = Array.from({ length: 10_000 }, (_, index) => `${'x'.repeat(2_000)}${index}`);
    const refusal = await refusalOf(bodyWith({ links }));
    expect(refusal).to.include({ code: 'BODY_TOO_COMPLEX' });
    expect(refusal.message).to.match(/^\/credentialSubject\/links /);
    expect(
      (await documentOf(bodyWith({ links: links.slice(0, 500) }))).credentialSubject.links,
    ).to.have.length(500);
  });

  it('refuses a name of more than 2,048 characters, and says which', async () => {
    const long = `urn:x:${'y'.repeat(2_043)}`;
    for (const [subject, pointer] of [
      [{ id: long }, '/credentialSubject/id '],
      [{ type: ['BillOfLading', long] }, '/credentialSubject/type '],
      [{ packages: [{ id: long }] }, '/credentialSubject/packages/0/id '],
      [{ ['y'.repeat(2_049)]: 1 }, '/credentialSubject/yyy'],
    ] as const) {
      const refusal = await refusalOf(bodyWith(subject));
      expect(refusal, pointer).to.include({ code: 'SUBJECT_VALUE_INVALID' });
      expect(refusal.message.startsWith(pointer), pointer).to.equal(true);
      expect(refusal.message).to.contain('is a name of more than 2048 characters; shorten it');
    }
    const allowed = await documentOf(bodyWith({ id: long.slice(0, -1) }));
    expect(allowed.credentialSubject).to.include({ id: long.slice(0, -1) });
  });

  it('ignores a byte order mark', async () => {
    expect((await documentOf(`\ufeff${bodyWith()}`)).issuer).to.equal(issuer.did);
  });

  it('reports a damaged key pair without printing it', async () => {
    const issuerKey = {
      ...issuer.keyPair,
      secretKeyMultibase: issuer.keyPair.secretKeyMultibase.slice(0, -3),
    };
    const prepareWith = createDocumentPreparer({ ...settingsOf(issuer), issuerKey });
    const refusal = await errorOf(prepareWith(preparationOf(bodyWith())));
    expect(refusal).to.be.instanceOf(ConfigurationError);
    expect(refusal.message)
      .to.match(/^DID_KEY_PAIRS is damaged/)
      .and.not.to.contain(issuerKey.secretKeyMultibase);
  });
});

/** A subject with these members, as text: it may have values that JavaScript cannot hold. */
function billWith(members: string): string {
  return `{"type":["BillOfLading"],${members}}`;
}

/** Nearly the deepest nesting of a body that is parsed. */
function nested(open: string, value: string, close: string): string {
  return open.repeat(19_000) + value + close.repeat(19_000);
}

function deep(open: string, close: string): string {
  return billWith(`"vessel":${nested(open, '"x"', close)}`);
}

function bodyOf(subject: string): string {
  return `{"credentialSubject":${subject},"owner":"${OWNER}","holder":"${HOLDER}"}`;
}
