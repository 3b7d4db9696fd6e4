import { expect } from 'chai';
import full from '../fixtures/bill-of-lading-full.json';
import { billOfLadingWithPdf } from '../fixtures/bill-of-lading-with-pdf';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** Nearly the deepest nesting of a body that is parsed. */
const DEPTH = 19_000;

/**
 * A subject of a Bill of Lading with these members, as text: it may have values that JavaScript cannot hold.
 */
const billWith = (members: string): string => `{"type":["BillOfLading"],${members}}`;

const packages = Array.from({ length: 300 }, (_, index) => ({
  packagesDescription: `Paket № ${index} 包裹`,
  packagesWeight: `${index} KG`,
  packagesMeasurement: '',
}));

describe('POST /create/{documentId} with large and hostile subjects', () => {
  let local: LocalSetup;
  let service: RunningService;
  let accounts: { owner: string; holder: string };
  let didDocument: Parameters<typeof verify>[1];
  const refusals = new Set<string | null>();

  before(async () => {
    local = await createLocalSetup();
    service = await startService(local.settings);
    accounts = { owner: await local.account(1), holder: await local.account(2) };
    const answer = await fetch(`${service.url}/.well-known/did.json`);
    didDocument = (await answer.json()) as typeof didDocument;
  });

  after(async () => {
    await service?.stop();
    await local?.stop();
  });

  const send = (subject: string): Promise<CreateAnswer> =>
    create(service.url, `{"credentialSubject":${subject},${JSON.stringify(accounts).slice(1)}`);

  const issued: [what: string, subject: string][] = [
    ['all twenty terms with non-ASCII text', JSON.stringify(full.credentialSubject)],
    ['300 packages', JSON.stringify({ ...full.credentialSubject, packages })],
    ['an attachment of 5 MiB', JSON.stringify(billOfLadingWithPdf())],
    ['empty strings', billWith('"scac":"","blNumber":"","links":"","packages":[{"packagesWeight":""}]')],
    ['nothing but a type', '{"type":["BillOfLading"]}'],
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
  ];
  for (const [what, subject] of issued) {
    it(`signs ${what}; the derived credential verifies and shows the same subject`, async () => {
      const { status, body } = await send(subject);
      expect(status).to.equal(200);
      const derived = await derive(body.signedW3CDocument, ['/credentialSubject', '/renderMethod']);
      expect(await verify(derived, didDocument)).to.include({ verified: true });
      expect(derived.credentialSubject).to.deep.equal(JSON.parse(subject));
    });
  }

  const nested = (open: string, close: string): string =>
    billWith(`"vessel":${open.repeat(DEPTH)}"x"${close.repeat(DEPTH)}`);
  const bill = '/credentialSubject';
  const refused: [what: string, subject: string, code: string, reason: string][] = [
    ['no member at all', '{}', 'SUBJECT_EMPTY', `${bill} states nothing`],
    ['deeply nested lists', nested('[', ']'), 'TEXT_NOT_PROTECTED', `${bill}/vessel/0 is a list in a list`],
    ['deeply nested objects', nested('{"name":', '}'), 'SUBJECT_VALUE_INVALID', 'nested deeper than 100'],
    ['terms without a type', '{"blNumber":"1"}', 'SUBJECT_TERM_UNDEFINED', '"blNumber" is not defined'],
    [
      'a term that is not defined',
      billWith('"vesel":"x"'),
      'SUBJECT_TERM_UNDEFINED',
      '"vesel" is not defined',
    ],
    [
      'a null under an undefined term',
      billWith('"paid":null'),
      'SUBJECT_TERM_UNDEFINED',
      '"paid" is not defined',
    ],
    [
      'a term of packages outside packages',
      billWith('"vessel":{"packagesWeight":"1"}'),
      'SUBJECT_TERM_UNDEFINED',
      '"packagesWeight"',
    ],
    ['a type that is not defined', '{"type":["Bill"]}', 'SUBJECT_TERM_UNDEFINED', 'Bill'],
    [
      'the URL of a context',
      billWith('"@context":"https://attacker.example/c"'),
      'TEXT_NOT_PROTECTED',
      `${bill}/@context is`,
    ],
    [
      'an inline context',
      billWith('"@context":{"paid":null},"paid":"x"'),
      'TEXT_NOT_PROTECTED',
      `${bill}/@context is`,
    ],
    ['JSON-LD keywords', billWith('"@base":"x"'), 'TEXT_NOT_PROTECTED', `${bill}/@base is a JSON-LD keyword`],
    [
      'constructor',
      billWith('"constructor":{"prototype":{"a":"1"}}'),
      'SUBJECT_TERM_UNDEFINED',
      '"constructor" is not defined',
    ],
    [
      'hasOwnProperty',
      billWith('"hasOwnProperty":"1"'),
      'SUBJECT_TERM_UNDEFINED',
      '"hasOwnProperty" is not defined',
    ],
    ['an empty key', billWith('"":"1"'), 'SUBJECT_TERM_UNDEFINED', '"" is not defined'],
    [
      'a proof',
      billWith('"proof":{"type":"DataIntegrityProof"}'),
      'TEXT_NOT_PROTECTED',
      `${bill}/proof would hold a graph`,
    ],
    [
      "the issuer's id",
      billWith('"id":"did:web:localhost%3A3000","name":"x"'),
      'TEXT_NOT_PROTECTED',
      `${bill}/id is also the id of another object`,
    ],
    ['a relative id', billWith('"id":"x"'), 'SUBJECT_TERM_UNDEFINED', 'Relative @id reference'],
    ['a blank node', billWith('"vessel":"PO_:123"'), 'TEXT_NOT_PROTECTED', `${bill}/vessel contains "_:"`],
    [
      'the name of a blank node',
      billWith('"vessel":"<urn:bnid:a>"'),
      'TEXT_NOT_PROTECTED',
      `${bill}/vessel contains "urn:bnid:"`,
    ],
    [
      'half a surrogate pair',
      billWith(String.raw`"vessel":"\ud83d"`),
      'TEXT_NOT_PROTECTED',
      `${bill}/vessel contains half`,
    ],
    [
      'a number too large to keep',
      billWith('"blNumber":1e400'),
      'SUBJECT_VALUE_INVALID',
      `${bill}/blNumber is a number`,
    ],
    [
      'a number too small to keep',
      billWith('"blNumber":1e-7'),
      'SUBJECT_VALUE_INVALID',
      `${bill}/blNumber is a number`,
    ],
    [
      'a repeated value',
      billWith('"links":["a","a"]'),
      'TEXT_NOT_PROTECTED',
      `${bill}/links/1 occurs more than once`,
    ],
  ];
  for (const [what, subject, code, reason] of refused) {
    it(`refuses ${what}, logs the reason and mints nothing`, async () => {
      const block = await local.client.getBlockNumber();
      const answer = await send(subject);
      expect([answer.status, answer.errorCode]).to.deep.equal([500, code]);
      expect(answer.body).to.deep.equal({ error: { message: 'Internal server error' } });
      refusals.add(answer.requestId);
      const line = service.log.find((entry) => entry.requestId === answer.requestId && 'error' in entry);
      expect(line?.code).to.equal(code);
      expect((line?.error as { message: string }).message).to.contain(reason);
      expect(await local.client.getBlockNumber()).to.equal(block);
    });
  }

  const withPrototype: [where: string, members: string][] = [
    ['in the subject', '"__proto__":{"blNumber":"1"}'],
    ['in a package', '"packages":[{"__proto__":null}]'],
    ['escaped', String.raw`"\u005f_proto__":{"blNumber":"1"}`],
    ['in deeply nested lists', `"vessel":${'['.repeat(DEPTH)}{"__proto__":1}${']'.repeat(DEPTH)}`],
  ];
  for (const [where, members] of withPrototype) {
    it(`refuses __proto__ ${where}, names it and mints nothing`, async () => {
      const block = await local.client.getBlockNumber();
      const answer = await send(billWith(members));
      expect(answer.status).to.equal(400);
      expect(answer.body.error?.message).to.contain('"__proto__"');
      expect(await local.client.getBlockNumber()).to.equal(block);
    });
  }

  it('logs no other errors, and still issues documents', async () => {
    const failures = service.log.filter((line) => 'error' in line);
    expect(failures.filter(({ requestId }) => !refusals.has(requestId as string))).to.deep.equal([]);
    expect((await send(JSON.stringify(minimal.credentialSubject))).status).to.equal(200);
  });
});
