import { expect } from 'chai';
import full from '../fixtures/bill-of-lading-full.json';
import { billOfLadingWithPdf } from '../fixtures/bill-of-lading-with-pdf';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** Nearly as deep as a body may be that is parsed. */
const DEPTH = 19_000;

/**
 * A subject of a Bill of Lading with these members, as text: what JavaScript cannot hold can be sent, too.
 */
const billWith = (members: string): string => `{"type":["BillOfLading"],${members}}`;

const packages = Array.from({ length: 300 }, (_, index) => ({
  packagesDescription: `Paket № ${index} 包裹`,
  packagesWeight: `${index} KG`,
  packagesMeasurement: '',
}));

describe('large and hostile subjects', () => {
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
    ['all twenty terms, not in ASCII', JSON.stringify(full.credentialSubject)],
    ['300 packages', JSON.stringify({ ...full.credentialSubject, packages })],
    ['an attachment of 5 MiB', JSON.stringify(billOfLadingWithPdf())],
    ['empty strings', billWith('"scac":"","blNumber":"","links":"","packages":[{"packagesWeight":""}]')],
    ['nothing but a type', '{"type":["BillOfLading"]}'],
    ['no member at all', '{}'],
    ['a type that is a string', '{"type":"BillOfLading","vessel":"x"}'],
    ['types of its own', '{"type":["BillOfLading","https://carrier.example/Bill"],"vessel":"x"}'],
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
    it(`signs ${what}, and the derived credential verifies and shows what was sent`, async () => {
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
    [
      'lists in lists without end',
      nested('[', ']'),
      'TEXT_NOT_PROTECTED',
      `${bill}/vessel/0 is a list in a list`,
    ],
    [
      'objects in objects without end',
      nested('{"name":', '}'),
      'SUBJECT_VALUE_INVALID',
      'nested deeper than 100',
    ],
    ['terms without a type', '{"blNumber":"1"}', 'SUBJECT_TERM_UNDEFINED', '"blNumber" is not defined'],
    [
      'a term that is not defined',
      billWith('"vesel":"x"'),
      'SUBJECT_TERM_UNDEFINED',
      '"vesel" is not defined',
    ],
    [
      'a null that is not defined',
      billWith('"paid":null'),
      'SUBJECT_TERM_UNDEFINED',
      '"paid" is not defined',
    ],
    [
      'a term of packages elsewhere',
      billWith('"vessel":{"packagesWeight":"1"}'),
      'SUBJECT_TERM_UNDEFINED',
      '"packagesWeight"',
    ],
    ['a type that is not defined', '{"type":["Bill"]}', 'SUBJECT_TERM_UNDEFINED', 'Bill'],
    [
      'a context to fetch',
      billWith('"@context":"https://attacker.example/c"'),
      'TEXT_NOT_PROTECTED',
      `${bill}/@context is`,
    ],
    [
      'a context written out',
      billWith('"@context":{"paid":null},"paid":"x"'),
      'TEXT_NOT_PROTECTED',
      `${bill}/@context is`,
    ],
    ['words of JSON-LD', billWith('"@base":"x"'), 'TEXT_NOT_PROTECTED', `${bill}/@base is a JSON-LD keyword`],
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
    it(`refuses ${what}, logs why, and mints nothing`, async () => {
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
    ['further down', '"packages":[{"__proto__":null}]'],
    ['escaped', String.raw`"\u005f_proto__":{"blNumber":"1"}`],
    ['below much else', `"vessel":${'['.repeat(DEPTH)}{"__proto__":1}${']'.repeat(DEPTH)}`],
  ];
  for (const [where, members] of withPrototype) {
    it(`refuses __proto__ ${where}, says so, and mints nothing`, async () => {
      const block = await local.client.getBlockNumber();
      const answer = await send(billWith(members));
      expect(answer.status).to.equal(400);
      expect(answer.body.error?.message).to.contain('"__proto__"');
      expect(await local.client.getBlockNumber()).to.equal(block);
    });
  }

  it('has failed at nothing else, and goes on issuing', async () => {
    const failures = service.log.filter((line) => 'error' in line);
    expect(failures.filter(({ requestId }) => !refusals.has(requestId as string))).to.deep.equal([]);
    expect((await send(JSON.stringify(minimal.credentialSubject))).status).to.equal(200);
  });
});
