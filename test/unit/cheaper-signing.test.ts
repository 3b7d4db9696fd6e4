import { execFile } from 'node:child_process';
import { createHmac, webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as EcdsaMultikey from '@digitalbazaar/ecdsa-multikey';
import { createSignCryptosuite, type Cryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { expect } from 'chai';
import { encodeBase58 } from 'ethers';
import type { ActiveContext, ProcessedContext } from 'jsonld/lib/ContextResolver.js';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader, type DocumentLoader } from '../../service/issuance/document-loader';
import {
  createIssuingCryptosuite,
  newStatementKey,
  type StatementKey,
} from '../../service/issuance/issuing-cryptosuite';
import { PreparedContexts } from '../../service/issuance/prepared-contexts';
import { MANDATORY_POINTERS } from '../../service/issuance/sign';
import { unsignedContentIn } from '../../service/issuance/signed-content';
import { PROJECT_ROOT } from '../../service/base/project-root';
import full from '../fixtures/bill-of-lading-full.json';
import { createPlainSign, type PlainSign } from '../helpers/credentials/plain-signing';
import { randomSubject } from '../helpers/credentials/random-subjects';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';
import { stopLater } from '../helpers/resources';
import { createTestIssuer } from '../helpers/credentials/test-issuer';
import { CONTEXT_URL, credentialWith } from '../helpers/credentials/unchecked-issuer';

const run = promisify(execFile);

const DATE = '2026-01-31T00:00:00.000Z';
/** To repeat a run, put the seed of its failure here. */
const SEED = 20260131;

const FULL: JsonObject = full.credentialSubject;

const ATTACHED = {
  ...FULL,
  attachments: [
    { data: 'JVBERi0xLjc'.repeat(20_000), filename: '提单.pdf', mimeType: 'application/pdf' },
    { data: '', filename: 'empty.txt', mimeType: 'text/plain' },
  ],
};

/** Two equal objects that only their position distinguishes. */
const ALIKE = { type: ['BillOfLading'], packages: [{ packagesWeight: '1' }, { packagesWeight: '1' }] };

describe('cheaper signing', () => {
  let plain: PlainSign;
  let documentLoader: DocumentLoader;
  /** One for all documents, as in the service: data cached for one must not affect the next. */
  let ours: ReturnType<typeof createIssuingCryptosuite>;
  let statementKey: StatementKey;

  before(async () => {
    const { keyPair } = await createTestIssuer();
    documentLoader = createDocumentLoader(CONTEXT_URL);
    plain = await createPlainSign(keyPair, documentLoader);
    statementKey = await fixRandomness();
    ours = createIssuingCryptosuite(MANDATORY_POINTERS, () => statementKey);
  });

  /** The signed document as text, or the whole refusal. */
  async function outcomeOf(credential: object, cryptosuite?: Cryptosuite): Promise<string> {
    try {
      return JSON.stringify(await plain(structuredClone(credential), DATE, cryptosuite));
    } catch (thrown) {
      const { name, message, details } = thrown as Error & { details?: object };
      return `refused: ${name} ${message} ${JSON.stringify(details)}`;
    }
  }

  /** Signs each twice, because the second time uses the cache. Returns how many were signed. */
  async function isTheSame(credentials: object[]): Promise<number> {
    let signed = 0;
    for (const credential of credentials) {
      const options = { documentLoader, contextResolver: new PreparedContexts() };
      const unsigned = await unsignedContentIn(credential as JsonObject, options).catch(() => []);
      // The library signs a document with content that the signature does not cover.
      if (unsigned.length > 0) continue;
      const expected = await outcomeOf(credential);
      for (const time of ['first', 'second']) {
        expect(await outcomeOf(credential, ours), `the ${time} time: ${JSON.stringify(credential)}`).to.equal(
          expected,
        );
      }
      if (!expected.startsWith('refused')) signed += 1;
    }
    return signed;
  }

  it('makes the same proof as the unmodified library, byte for byte', async () => {
    const list = Array.from({ length: 60 }, (_, index) => ({
      packagesDescription: `Kaffee, Sack ${index} ☕ 咖啡`,
      packagesWeight: `${index} kg`,
      packagesMeasurement: `${index} m³`,
    }));
    const subjects = [
      { ...FULL, packages: list },
      { ...FULL, packages: list.slice(0, 3) },
      ATTACHED,
      ALIKE,
      { id: 'urn:x:1', ...FULL, type: 'BillOfLading' },
      { ...FULL, name: 'a term of the base context', description: '说明' },
    ];
    expect(await isTheSame(subjects.map(credentialWith))).to.equal(subjects.length);
  });

  it('makes that proof without mandatory pointers too, and none if one matches nothing', async () => {
    const oursWith = (pointers: string[]) =>
      outcomeOf(
        credentialWith(FULL),
        createIssuingCryptosuite(pointers, () => statementKey),
      );
    const suite = createSignCryptosuite({ mandatoryPointers: [] });
    expect(await oursWith([])).to.equal(await outcomeOf(credentialWith(FULL), suite));
    for (const pointer of ['/nothing', '/credentialSubject/links/0/x'])
      expect(await oursWith(['/issuer', pointer])).to.contain(
        `The mandatory pointer ${pointer} matches nothing.`,
      );
  });

  it('agrees with the library on random subjects of every shape that the vocabulary allows', async () => {
    const random = seededRandom(SEED);
    const odd = Array.from({ length: 25 }, () => randomSubject(random));
    const varied = Array.from({ length: 30 }, () => variedSubject(random));
    const signed = await isTheSame([...varied, ...odd].map(credentialWith));
    expect(signed).to.be.greaterThan(25);
  });

  it('refuses the same documents as the library, with the same messages', async () => {
    const subjects = [
      { ...FULL, vesel: 'x' },
      { ...FULL, type: undefined },
      { ...FULL, links: { href: 'x' } },
      { ...FULL, id: 'relative' },
      { ...FULL, packages: [{ scac: 'x' }] },
      { ...FULL, packages: [{ nothing: 'x' }] },
      { ...FULL, packagesWeight: 'x' },
      { ...FULL, xsd: 'x' },
      { ...FULL, 'xsd:integer': 'x' },
      { ...FULL, attachments: [{ templateName: 'x' }] },
      { ...FULL, tokenId: 'x' },
      { ...FULL, packages: [{ type: 'TransferableRecords', tokenId: 'x', chain: 'x' }] },
    ];
    const signed = await isTheSame(subjects.map(credentialWith));
    expect(subjects.length - signed).to.be.greaterThan(8);
  });

  it('refuses the same contexts as the library, with the same messages', async () => {
    const credential = credentialWith(FULL);
    const added = [
      'https://unknown.example/context.json',
      { name: 'https://other.example/protected' },
      null,
      [{ unprotected: 'https://other.example/unprotected' }, null],
      { '@reserved': 'https://other.example/an-event-of-processing' },
      { Typed: { '@id': 'https://other.example/Typed', '@context': { name: 'https://other.example/name' } } },
    ].map((context) => ({ ...credential, '@context': [credential['@context'], context].flat(2) }));
    const types = added.map((one) => ({
      ...one,
      credentialSubject: { ...FULL, packages: [{ type: 'Typed', name: 'x' }] },
    }));
    expect(await isTheSame([...added, ...types])).to.equal(1);
  });

  it('keeps at most 50 processed contexts in its cache', async () => {
    const [context] = await new PreparedContexts().resolve({ context: [CONTEXT_URL], documentLoader });
    const actives = Array.from({ length: 1_000 }, () => ({}) as ActiveContext);
    const processed = { context: { mappings: new Map() }, events: [] } as unknown as ProcessedContext;
    for (const active of actives) context?.cache.set(active, processed);
    const kept = actives.filter((active) => context?.cache.get(active) !== undefined);
    expect(kept).to.have.lengthOf.within(1, 50);
  });
});

/**
 * A subject in a shape that the vocabulary allows: terms are missing, in arrays, nested in place of a string,
 * or under further types.
 */
function variedSubject(random: SeededRandom, depth = 1): JsonObject {
  const text = (): string =>
    random.pick(['', 'Köln', '上海港', 'a"b\\c\n', '12', 'https://carrier.example/x?y#z']);
  const value = (): unknown => {
    if (random.chance(0.8)) return text();
    return random.chance(0.5) || depth === 0 ? [text(), text()] : variedSubject(random, depth - 1);
  };
  const some = (terms: string[]): JsonObject =>
    Object.fromEntries(terms.filter(() => random.chance(0.5)).map((term) => [term, value()]));
  // The containers of the vocabulary are sets: one item needs no array.
  const list = (terms: string[]): JsonObject | JsonObject[] =>
    random.chance(0.2) ? some(terms) : Array.from({ length: random.below(3) }, () => some(terms));
  const others = ['TransferableRecords', 'EMBEDDED_RENDERER', 'https://other.example/Type'];
  return {
    type: random.chance(0.3) ? ['BillOfLading', random.pick(others)] : ['BillOfLading'],
    ...some(Object.keys(FULL).filter((term) => term !== 'type' && term !== 'packages')),
    packages: list(['packagesDescription', 'packagesWeight', 'packagesMeasurement']),
    attachments: list(['data', 'filename', 'mimeType']),
  };
}

/**
 * Makes signing deterministic until the suite ends, for the libraries and their callers: the HMAC key is all
 * sevens, the key of the statements is fixed, and the same data always has the same signature, unlike with
 * ECDSA. Returns the key of the statements.
 */
async function fixRandomness(): Promise<StatementKey> {
  const { subtle } = webcrypto;
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const pair = await subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const publicKey = compressed(new Uint8Array(await subtle.exportKey('raw', pair.publicKey)));
  replace(webcrypto, 'getRandomValues', (bytes: Uint8Array) => bytes.fill(7));
  // The library deletes members of its argument.
  replace(subtle, 'generateKey', async () => ({ publicKey: pair.publicKey, privateKey: pair.privateKey }));
  replace(subtle, 'sign', async (_: unknown, key: unknown, data: Uint8Array) =>
    standIn(data, key === pair.privateKey ? 'statements' : 'issuer'),
  );
  return { publicKey, sign: (data) => standIn(data, 'statements') };
}

/** A stand-in for a signature: 64 bytes that depend on the data and the key. */
function standIn(data: Uint8Array, key: string): Uint8Array {
  const half = createHmac('sha256', key).update(data).digest();
  return Uint8Array.from([...half, ...half]);
}

/** The bytes of a Multikey: the prefix of P-256, the parity of y, and x. */
function compressed(point: Uint8Array): Uint8Array {
  return Uint8Array.from([0x80, 0x24, 2 + ((point[64] ?? 0) % 2), ...point.subarray(1, 33)]);
}

/** Overrides a method of the prototype until the suite ends. */
function replace(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true });
  stopLater(name, () => Reflect.deleteProperty(target, name));
}

describe('the statement key', () => {
  it('makes signatures that the library verifies, and only for the signed data', async () => {
    for (let round = 0; round < 4; round++) {
      const { publicKey, sign } = newStatementKey();
      const publicKeyMultibase = `z${encodeBase58(publicKey)}`;
      const key = { type: 'Multikey', id: 'urn:x', controller: 'urn:x', publicKeyMultibase };
      const verifier = (await EcdsaMultikey.from(key)).verifier();
      const data = Buffer.from('a statement');
      expect(await verifier.verify({ data, signature: sign(data) })).to.equal(true);
      expect(await verifier.verify({ data: Buffer.from('another'), signature: sign(data) })).to.equal(false);
      expect(newStatementKey().publicKey).to.not.deep.equal(publicKey);
    }
  });

  it('is made 4,000 times without a deadlock with garbage collection', async function () {
    this.timeout(60_000);
    // A process of its own, because a thread that hangs in Node.js itself cannot be ended. With the smallest
    // heap of young objects, garbage is collected often.
    const flags = ['--max-semi-space-size=1', '--require', 'ts-node/register/transpile-only'];
    const script =
      `const { newStatementKey } = require('./service/issuance/issuing-cryptosuite');` +
      `for (let made = 0; made < 4_000; made++) newStatementKey();`;
    await run(process.execPath, [...flags, '--eval', script], {
      cwd: PROJECT_ROOT,
      timeout: 50_000,
      killSignal: 'SIGKILL',
    });
  });
});

/**
 * issuing-cryptosuite.ts relies on the internals of these versions. Before you enter
 * another version, read the changes in jsonld's lib/context.js, lib/ContextResolver.js and
 * lib/ResolvedContext.js, and in the cryptosuite's lib/sign.js and lib/proofValue.js, and measure again
 * (npm run bench -- large-bodies).
 */
const READ = {
  jsonld: '9.0.0',
  '@digitalbazaar/ecdsa-sd-2023-cryptosuite': '3.4.1',
  '@digitalbazaar/di-sd-primitives': '3.3.0',
  '@digitalbazaar/data-integrity': '2.5.0',
};

interface PackageFile {
  version?: string;
  dependencies?: Record<string, string>;
}

const packageFile = (folder: string): PackageFile =>
  JSON.parse(readFileSync(join(PROJECT_ROOT, folder, 'package.json'), 'utf8')) as PackageFile;

describe('libraries whose internals cheaper signing relies on', () => {
  for (const [name, version] of Object.entries(READ))
    it(`${name} is installed and pinned at the version that was reviewed`, () => {
      expect(packageFile(join('node_modules', name)).version).to.equal(version);
      expect(packageFile('.').dependencies?.[name]).to.equal(version);
    });
});
