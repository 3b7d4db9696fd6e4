import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { LONGEST_MESSAGE } from '../../service/base/errors';
import { printableJson } from '../../cli/terminal/printable';
import { printable } from '../../service/base/printable';
import { systemTime } from '../../service/base/time';
import { verifyFile } from '../../cli/credentials/verify-and-derive';
import type { JsonObject } from '../../service/issuance/credential';
import { credentialIn } from '../../service/verification/presented-credential';
import { verifyCredential, type VerificationSources } from '../../service/verification/verify-credential';
import { errorOf } from '../helpers/error-of';
import { fakeSources } from '../helpers/credentials/fake-sources';
import { seededRandom } from '../helpers/seeded-random';
import { FOREIGN_DOCUMENTS } from '../helpers/credentials/foreign-documents';
import { temporaryFolder } from '../helpers/temporary-folder';
import type { TestIssuer } from '../helpers/credentials/test-issuer';
import { prepareVerification } from '../helpers/credentials/verification-parts';

/** JSON values that are wrong in almost any place of a credential. */
const RUBBISH: unknown[] = [
  ...[null, true, -1.5, Infinity, '', '\u001b]0;owned\u0007', '_:b0', 'did:web:x', 'u2V0A', 'u2V0B', 'z'],
  ...[[], [null], [[]], [{}], {}, { id: null }, { id: {} }, { type: [] }],
  ...[{ '@context': 'https://evil.example/' }, { '@id': 7 }, { '@value': {} }, { '@graph': [] }],
  JSON.parse('{"__proto__": {"type": "DataIntegrityProof"}}'),
  { constructor: 'x', toString: 1, hasOwnProperty: null },
  'x'.repeat(100_000),
];

describe('rubbish in place of a credential', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'x.json');
  let issuer: TestIssuer;
  let base: JsonObject;
  let derived: JsonObject;

  before(async () => {
    ({ issuer, base, derived } = await prepareVerification());
  });

  async function endsWell(credential: JsonObject, what: string): Promise<void> {
    const result = await verifyCredential(credential, fakeSources(issuer)).catch((thrown: unknown) => {
      expect(thrown, String((thrown as Error).stack)).to.have.property('code', 'CREDENTIAL_INVALID');
    });
    if (result?.outcome !== 'valid') return;
    const signed = leavesOf({ ...base, proof: undefined });
    const said = [...leavesOf({ ...result.shown, proof: undefined })];
    expect(
      said.filter((value) => !signed.has(value)),
      `VALID with ${what}`,
    ).to.deep.equal([]);
  }

  it('gives an answer or CREDENTIAL_INVALID in any place, VALID only if all values were signed', async () => {
    for (const [place, path] of pathsOf(derived).entries()) {
      // Each place gets a third of the values, and its neighbours get the others. These are read one by one.
      const isRead = ['issuer', 'proof', 'credentialStatus'].includes(String(path[0]));
      for (const rubbish of RUBBISH.filter((_, index) => isRead || index % 3 === place % 3)) {
        const changed = structuredClone(derived);
        put(changed, path, rubbish);
        await endsWell(changed, `${JSON.stringify(rubbish)} at ${path.join('/')}`);
      }
    }
  });

  it('gives the same in several places at once, in base and derived credentials', async () => {
    const random = seededRandom(4);
    for (let run = 0; run < 150; run++) {
      const changed = structuredClone(random.pick([base, derived]));
      for (let change = 0; change < 1 + (run % 4); change++) {
        const paths = pathsOf(changed);
        if (paths.length > 0) put(changed, random.pick(paths), structuredClone(random.pick(RUBBISH)));
      }
      await endsWell(changed, `run ${run}`);
    }
  });

  const withX = (json: string): string => `{"type": "VerifiableCredential", "x": ${json}}`;
  const contexts = Array(10_000).fill('https://a.example/');
  const withContexts = JSON.stringify({ type: 'VerifiableCredential', '@context': contexts });

  for (const [name, text, code] of [
    ['no content', '', 'FILE_NOT_JSON'],
    ['broken JSON', '{', 'FILE_NOT_JSON'],
    ['binary data', Buffer.from([0xff, 0xfe, 0, 1]), 'FILE_NOT_JSON'],
    ['null', 'null', 'CREDENTIAL_INVALID'],
    ['a failure of POST /create', '{"error": {"message": "x"}}', 'CREDENTIAL_INVALID'],
    ['an answer without its credential', '{"signedW3CDocument": null}', 'CREDENTIAL_INVALID'],
    ['100,000 levels of arrays', withX('['.repeat(100_000) + ']'.repeat(100_000)), 'FILE_UNREADABLE'],
    [
      '100,000 levels of objects',
      withX('{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000)),
      'FILE_UNREADABLE',
    ],
    ['10,000 contexts', withContexts, 'CREDENTIAL_INVALID'],
  ] as const)
    it(`gives 'could not tell' and ${code} for a file with ${name}`, async () => {
      writeFileSync(file, text);
      const { isYes, remarks, json, lines } = await verifyFile(systemTime, file, {});
      expect(isYes).to.equal(undefined);
      expect(lines).to.deep.equal([]);
      expect(remarks?.join()).to.contain(`[${code}]`);
      expect(json).to.have.property('outcome', 'could not tell');
      expect(json).to.have.nested.property('error.code', code);
    });

  it('is printed with control and direction characters escaped, and cut if it is too long', () => {
    const evil = 'a\u001b[2J\u009b2J\u202e\u2066\r\nb\u2028\ud800';
    expect(printable(evil)).to.equal('a\\u001b[2J\\u009b2J\\u202e\\u2066\\u000d\\u000ab\\u2028\\ud800');
    expect(printable('提单 é')).to.equal('提单 é');
    expect(printable('x'.repeat(5_000))).to.have.lengthOf(LONGEST_MESSAGE);
    const json = printableJson({ evil, id: 2n ** 255n });
    for (const mark of '\u001b\u009b\u202e\u2028') expect(json).not.to.contain(mark);
    expect(JSON.parse(json)).to.deep.equal({ evil, id: (2n ** 255n).toString() });
  });

  it('is refused if a name has more than 2,048 characters, and the error says which', async () => {
    const long = `did:web:${'a:'.repeat(5_000)}`;
    for (const [path, value, pointer] of [
      [['issuer'], long, '/issuer'],
      [['issuer'], { id: long }, '/issuer/id'],
      [['id'], long, '/id'],
      [['type'], ['VerifiableCredential', long], '/type'],
      [['@context'], [long], '/@context'],
      [['proof', 'verificationMethod'], long, '/proof/verificationMethod'],
      [['credentialSubject', long], 1, '/credentialSubject/did:web:a:'],
    ] as const) {
      const changed = structuredClone(base);
      put(changed, [...path], value);
      const refusal = await errorOf(verifyCredential(changed, fakeSources(issuer)));
      expect(refusal, pointer).to.have.property('code', 'CREDENTIAL_INVALID');
      expect(refusal.message.startsWith(pointer), refusal.message).to.equal(true);
      expect(refusal.message).to.contain('is a name of more than 2048 characters').and.have.length.below(400);
    }
  });

  it('is not called invalid when a limit of the libraries ends the check', async () => {
    const context = 'https://issuer.example/see';
    const see = { '@id': 'https://issuer.example/see#see', '@type': '@id' };
    const json = { '@context': { see } };
    const changed: JsonObject = {
      ...base,
      '@context': [...(base['@context'] as string[]), context],
      credentialSubject: { ...(base.credentialSubject as object), see: `urn:x:${'y'.repeat(12_000_000)}` },
    };
    const fetchJson: VerificationSources['fetchJson'] = async ({ href: url }) => {
      return { kind: 'json', url, contentType: 'application/json', text: JSON.stringify(json), json };
    };
    const { documentIntegrity } = await verifyCredential(changed, fakeSources(issuer, { fetchJson }));
    expect(documentIntegrity.outcome).to.equal('could not tell');
    const [signature] = documentIntegrity.checks.filter(({ check }) => check === 'signature');
    expect(signature?.found).to.match(/^not checked: /);
  });

  for (const { name, document, message } of FOREIGN_DOCUMENTS)
    it(`is refused with its name and a remedy if it is ${name}`, async () => {
      for (const given of [document, { signedW3CDocument: document }, { verifiableCredential: document }]) {
        expect(() => credentialIn(given)).to.throw(message);
        writeFileSync(file, JSON.stringify(given));
        expect((await verifyFile(systemTime, file, {})).remarks?.join('\n')).to.match(message);
      }
    });

  it('is refused as not a verifiable credential if it is the whole document', () => {
    for (const input of RUBBISH) expect(() => credentialIn(input)).to.throw(/not a verifiable credential/);
  });
});

type Path = (string | number)[];

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value).flatMap((key) => {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    return [at, ...pathsOf((value as JsonObject)[key], at)];
  });
}

function put(root: JsonObject, path: Path, value: unknown): void {
  const parent = path.slice(0, -1).reduce<unknown>((inside, key) => (inside as JsonObject)[key], root);
  const key = String(path.at(-1));
  Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The values of all members except null, which states nothing. */
function leavesOf(value: unknown): Set<unknown> {
  if (value === null || value === undefined) return new Set();
  if (typeof value !== 'object') return new Set([value]);
  return new Set(Object.values(value).flatMap((child) => [...leavesOf(child)]));
}
