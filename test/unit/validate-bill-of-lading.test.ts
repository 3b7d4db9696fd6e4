import { Ajv2020 } from 'ajv/dist/2020';
import { expect } from 'chai';
import { findSubject } from '../../cli/credentials/validate';
import { readContextFile, BILL_OF_LADING_SCHEMA } from '../../service/base/published-files';
import { jsonLdProblems } from '../../service/validation/json-ld-problems';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { validateRequest } from '../../service/validation/validate-request';
import full from '../fixtures/bill-of-lading-full.json';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { FOREIGN_DOCUMENTS } from '../helpers/credentials/foreign-documents';
import { HOLDER, OWNER } from '../helpers/credentials/preparations';

const VALID = minimal.credentialSubject;
/** Those whose values are strings. */
const TERMS = Object.keys(full.credentialSubject).filter((term) => term !== 'type' && term !== 'packages');

/** Every problem of a valid subject with these changes, as "pointer CODE". */
async function problemsOf(changes: object): Promise<string[]> {
  const problems = await validateBillOfLading({ ...VALID, ...changes });
  return problems.map(({ pointer, code }) => `${pointer} ${code}`);
}

describe('strict validation of a Bill of Lading', () => {
  it('finds no problem in a minimal subject, a full one and one with attachments', async () => {
    expect(await validateBillOfLading(VALID)).to.deep.equal([]);
    expect(await validateBillOfLading(full.credentialSubject)).to.deep.equal([]);
    const attachments = [{ data: 'AA==', filename: 'a.pdf', mimeType: 'application/pdf' }];
    expect(
      await problemsOf({ attachments, id: 'urn:x:1', name: 'n', description: 'd', packages: [] }),
    ).to.deep.equal([]);
  });

  it('reports "Missing credentialSubject" when there is none', async () => {
    for (const nothing of [undefined, null]) {
      expect(await validateBillOfLading(nothing)).to.deep.equal([
        { pointer: '', code: 'SUBJECT_MISSING', message: 'Missing credentialSubject' },
      ]);
    }
  });

  it('reports "Missing type BillOfLading" for other types', async () => {
    for (const type of [undefined, [], ['Invoice'], 'Invoice', ['NoBillOfLading'], null])
      expect((await validateBillOfLading({ ...VALID, type }))[0], JSON.stringify(type)).to.deep.equal({
        pointer: '/type',
        code: 'TYPE_NOT_BILL_OF_LADING',
        message: 'Missing type BillOfLading',
      });
  });

  it('reports "Missing required BillOfLading fields" for each that is missing or empty', async () => {
    const message = 'Missing required BillOfLading fields';
    expect(await validateBillOfLading({ type: ['BillOfLading'], scac: '' })).to.deep.equal([
      { pointer: '/blNumber', code: 'REQUIRED_FIELD_MISSING', message },
      { pointer: '/scac', code: 'REQUIRED_FIELD_MISSING', message },
    ]);
    for (const blNumber of ['', ' ', '\t\u00a0\n'])
      expect(await problemsOf({ blNumber })).to.deep.equal(['/blNumber REQUIRED_FIELD_MISSING']);
  });

  it('reports a subject that states nothing, which signing refuses', async () => {
    for (const empty of [{}, { id: 'urn:x:1', vessel: null, packages: [] }])
      expect(await validateBillOfLading(empty)).to.deep.include({
        pointer: '',
        code: 'SUBJECT_EMPTY',
        message: 'States nothing; give it a type and terms with values',
      });
    expect(await problemsOf({ type: ['Invoice'] })).not.to.include(' SUBJECT_EMPTY');
  });

  it('requires an array of strings as type, and a string for every other term but packages', async () => {
    expect(await problemsOf({ type: 'BillOfLading' })).to.deep.equal(['/type VALUE_TYPE_WRONG']);
    expect(await problemsOf({ type: ['BillOfLading', 5] })).to.deep.equal(['/type/1 VALUE_TYPE_WRONG']);
    expect(TERMS).to.have.length(16);
    for (const wrong of [5, true, null, ['x'], { '@value': 'x' }])
      expect(await problemsOf(Object.fromEntries(TERMS.map((term) => [term, wrong])))).to.include.members(
        TERMS.map((term) => `/${term} VALUE_TYPE_WRONG`),
      );
  });

  it('requires an array of objects as packages, with strings and known terms in them', async () => {
    expect(await problemsOf({ packages: {} })).to.deep.equal(['/packages VALUE_TYPE_WRONG']);
    const packages = [{}, 'x', { packagesWeight: 5, scac: 'x' }];
    expect(await problemsOf({ packages })).to.have.members([
      '/packages/1 VALUE_TYPE_WRONG',
      '/packages/2/packagesWeight VALUE_TYPE_WRONG',
      '/packages/2/scac TERM_UNKNOWN',
    ]);
  });

  it('reports every unknown term, also __proto__, constructor and @context', async () => {
    const pointers = {
      vesel: '/vesel',
      'a/b~c': '/a~1b~0c',
      '': '/',
      '@context': '/@context',
      constructor: '/constructor',
      'https://other.example/term': '/https:~1~1other.example~1term',
    };
    expect(await problemsOf(pointers)).to.have.members(
      Object.values(pointers).map((pointer) => `${pointer} TERM_UNKNOWN`),
    );
    const proto = JSON.parse('{"__proto__":{"a":1}}') as object;
    Object.defineProperties(proto, Object.getOwnPropertyDescriptors(VALID));
    const [first] = await validateBillOfLading(proto);
    expect(first).to.include({ pointer: '/__proto__', code: 'TERM_UNKNOWN' });
  });

  for (const [name, hint] of [
    ['vesel', 'vessel'],
    ['vessle', 'vessel'],
    ['portofloading', 'portOfLoading'],
    ['carrier', 'carrierName'],
    ['voyage', 'voyageNo'],
    ['blNo', 'blNumber'],
    ['shipper', 'shipperName, shipperAddressStreet, shipperAddressCountry'],
    ['packages/weight', 'packagesWeight'],
    ['packages/description', 'packagesDescription'],
    ['attachments/type', 'mimeType'],
    ['attachments/fileName', 'filename'],
    ['attachments/size', undefined],
    ['portOfArrival', undefined],
    ['', undefined],
    ['x'.repeat(1_000_000), undefined],
  ] as const)
    it(`${hint ? `suggests ${hint}` : 'suggests nothing'} for the term ${name.slice(0, 30)}`, async () => {
      const [term = '', list] = name.split('/').reverse();
      const subject = { ...VALID, ...(list === undefined ? { [term]: 'x' } : { [list]: [{ [term]: 'x' }] }) };
      const [problem] = await validateBillOfLading(subject);
      const suggestion = problem?.message.match(/ has here(?:; did you mean (.*)\?)?$/)?.[1];
      expect([problem?.code, suggestion]).to.deep.equal(['TERM_UNKNOWN', hint]);
    });

  for (const [data, isShown] of [
    ['', true],
    ['JVBERi0xLjc=', true],
    ['data:application/pdf;base64,JVBERi0xLjc=', false],
    ['JVBERi0x\nLjc=', false],
    ['JVBERi0xLjc= ', false],
    ['JVBERi0xLjc', false],
    ['JVBERi0xLjd=', false],
    ['-_8=', false],
    ['https://files.example/a.pdf', false],
  ] as const)
    it(`${isShown ? 'accepts' : 'reports'} the data ${JSON.stringify(data)}, which is issued`, async () => {
      const attachments = [{ data: 'QQ==' }, { data, filename: 'a.pdf', mimeType: 'application/pdf' }];
      const { problems } = await validateRequest({
        owner: OWNER,
        holder: HOLDER,
        credentialSubject: { ...VALID, attachments },
      });
      expect(problems.map(({ pointer, code, isRefused }) => ({ pointer, code, isRefused }))).to.deep.equal(
        isShown
          ? []
          : [
              {
                pointer: '/credentialSubject/attachments/1/data',
                code: 'ATTACHMENT_NOT_BASE64',
                isRefused: false,
              },
            ],
      );
    });

  it('requires one object as the subject', async () => {
    for (const other of [[VALID], 'x', 5, true]) {
      expect(await validateBillOfLading(other)).to.deep.equal([
        { pointer: '', code: 'VALUE_TYPE_WRONG', message: 'Must be an object' },
      ]);
    }
  });

  it('reports unprotected text, relative ids and undefined types, which signing would refuse', async () => {
    expect(await problemsOf({ vessel: 'PO_:123' })).to.deep.equal(['/vessel TEXT_NOT_PROTECTED']);
    expect(await problemsOf({ id: 'abc' })).to.deep.equal(['/id SUBJECT_TERM_UNDEFINED']);
    expect(await problemsOf({ type: ['A', 'BillOfLading', 'B'] })).to.deep.equal([
      '/type SUBJECT_TERM_UNDEFINED',
      '/type SUBJECT_TERM_UNDEFINED',
    ]);
  });

  it('reports all problems at once', async () => {
    const packages = [{ packagesWeight: '\ud800' }];
    const changes = { type: ['A'], id: 'abc', vessel: 'PO_:123', blNumber: '', links: {}, foo: 1, packages };
    expect(await problemsOf(changes)).to.have.members([
      '/type TYPE_NOT_BILL_OF_LADING',
      '/blNumber REQUIRED_FIELD_MISSING',
      '/links VALUE_TYPE_WRONG',
      '/foo TERM_UNKNOWN',
      '/vessel TEXT_NOT_PROTECTED',
      '/packages/0/packagesWeight TEXT_NOT_PROTECTED',
      '/id SUBJECT_TERM_UNDEFINED',
      '/type SUBJECT_TERM_UNDEFINED',
    ]);
  });

  it('handles 100,000 levels of nesting', async () => {
    const deep = JSON.parse(`${'{"vessel":'.repeat(100_000)}1${'}'.repeat(100_000)}`) as object;
    expect(await problemsOf({ vessel: deep })).to.include('/vessel VALUE_TYPE_WRONG');
  });
});

describe('the JSON Schema of a Bill of Lading', () => {
  const schema = JSON.parse(readContextFile(BILL_OF_LADING_SCHEMA).toString()) as {
    $schema: string;
    $id: string;
  };
  const accepts = new Ajv2020({ strict: true }).compile(schema);

  it('is of draft 2020-12, and its $id is the URL that it is served at', () => {
    expect(schema.$schema).to.equal('https://json-schema.org/draft/2020-12/schema');
    const served = `https://issuer.example/contexts/${BILL_OF_LADING_SCHEMA}`;
    expect(new URL(schema.$id, served).href).to.equal(served);
  });

  it('requires an object with an array of strings as type, and strings as scac and blNumber', () => {
    expect(accepts(VALID)).to.equal(true);
    for (const name of ['type', 'scac', 'blNumber'])
      for (const value of [undefined, null, 5, {}, [5], name === 'type' ? 'BillOfLading' : ['x']]) {
        const subject = JSON.parse(JSON.stringify({ ...VALID, [name]: value })) as object;
        expect(accepts(subject), `${name}: ${JSON.stringify(value)}`).to.equal(false);
      }
    for (const other of [[VALID], 'x', 5, null]) expect(accepts(other)).to.equal(false);
  });

  it('leaves all other problems to the validator', async () => {
    const others = { vessel: 5, packages: 'x', attachments: [{ size: 1 }], vesel: 'x', name: null };
    expect(accepts({ ...VALID, type: [], scac: '', blNumber: '', ...others })).to.equal(true);
    expect(await problemsOf(others)).to.have.members([
      '/vessel VALUE_TYPE_WRONG',
      '/packages VALUE_TYPE_WRONG',
      '/attachments/0/size TERM_UNKNOWN',
      '/vesel TERM_UNKNOWN',
      '/name VALUE_TYPE_WRONG',
    ]);
  });
});

describe('the terms of strict validation', () => {
  it('are those that the contexts define for a subject, except terms that do not describe it', async () => {
    const files =
      'bill-of-lading-v1 attachments-context render-method-context-v2 transferable-records-context';
    const named = files.split(' ').flatMap((file) => wordsIn(readContextFile(`${file}.json`).toString()));
    const base =
      'id name description mediaType digestSRI digestMultibase proof renderMethod issuer validFrom evidence';
    const known: string[] = [];
    const defined: string[] = [];
    for (const term of new Set([...named, ...base.split(' ')])) {
      if (term === 'type') continue;
      const value = term === 'id' ? 'urn:x:1' : { name: 'x' };
      const problems = await jsonLdProblems({ type: ['BillOfLading'], [term]: value });
      if (problems.length === 0) defined.push(term);
      if (!(await problemsOf({ [term]: value })).includes(`/${term} TERM_UNKNOWN`)) known.push(term);
    }
    expect(known).to.include.members([...TERMS, 'packages']);
    expect(known.filter((term) => !defined.includes(term))).to.deep.equal([]);
    const others =
      'mediaType digestSRI digestMultibase xsd BillOfLading EMBEDDED_RENDERER TransferableRecords';
    expect(defined.filter((term) => !known.includes(term))).to.have.members(others.split(' '));
  });
});

/** The names of all the properties in a JSON text. */
function wordsIn(text: string): string[] {
  return [...text.matchAll(/"(\w+)":/g)].map(([, word]) => word ?? '');
}

describe('the subject in a file', () => {
  for (const [value, found] of [
    [{ scac: 'A' }, 'credentialSubject  {"scac":"A"}'],
    [{ credentialSubject: 1, owner: '0x', holder: '0x' }, 'request /credentialSubject 1'],
    [{ credentialSubject: 1 }, 'request /credentialSubject 1'],
    [
      { '@context': [], type: ['VerifiableCredential'], credentialSubject: 1 },
      'credential /credentialSubject 1',
    ],
    [
      { signedW3CDocument: { proof: {}, credentialSubject: 1 }, txHash: '0x' },
      'answer /signedW3CDocument/credentialSubject 1',
    ],
    [
      { verifiableCredential: { proof: {}, credentialSubject: 1 } },
      'answer /verifiableCredential/credentialSubject 1',
    ],
    [{ signedW3CDocument: null }, 'answer /signedW3CDocument/credentialSubject undefined'],
    [[1], 'credentialSubject  [1]'],
    // A request or a credential that has none.
    [{ owner: '0x', holder: '0x' }, 'request /credentialSubject undefined'],
    [{ type: 'VerifiableCredential' }, 'credential /credentialSubject undefined'],
    [{ '@context': {}, scac: 'A' }, 'credentialSubject  {"@context":{},"scac":"A"}'],
  ] as const)
    it(`of ${JSON.stringify(value)} is ${found}`, () => {
      const { takenFor, pointer, subject } = findSubject(value);
      expect(`${takenFor} ${pointer} ${JSON.stringify(subject)}`).to.equal(found);
    });

  for (const { name, document, message } of FOREIGN_DOCUMENTS)
    it(`is not looked for in ${name}`, () => {
      expect(() => findSubject(document)).to.throw(message);
    });
});
