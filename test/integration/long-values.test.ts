import { expect } from 'chai';
import { cut, LONGEST_MESSAGE } from '../../service/base/errors';
import { isWellFormed, pointerOf } from '../../service/base/json';
import { createLogger } from '../../service/base/logger';
import { OPERATIONS } from '../../client/description/openapi';
import type { Operation } from '../../service/http/description/operation';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { DEPLOYER_KEY } from '../helpers/chain/local-setup';
import { create } from '../helpers/processes/create-call';
import {
  ADMIN_API_KEY,
  startSubscribedService,
  type SubscribedService,
} from '../helpers/processes/subscribed-service';

const API_KEY = 'key-of-the-test-of-long-values';
/** Longer than any line of the log: an error has a few texts of 4,000 characters at most. */
const LONGEST_LINE = 40_000;
/** Two units of UTF-16. */
const SHIP = '\u{1f6a2}';

/** Requests of an operation with one value that is too long. */
function* requestsOf({ method, path, pathParameters, query, headers, body }: Operation, example: object) {
  const usual = path.replace(/\{(\w+)\}/g, (_, name: string) => pathParameters?.[name]?.example ?? name);
  for (const unit of ['x', SHIP, '"']) {
    const ofHead = encodeURIComponent(unit.repeat(encodeURIComponent(unit).length > 1 ? 1_000 : 3_000));
    for (const name of Object.keys(pathParameters ?? {}))
      yield { method, body: example, target: path.replace(`{${name}}`, ofHead).replace(/\{\w+\}/g, '1') };
    for (const name of [...Object.keys(query?.shape ?? {}), ofHead])
      yield { method, body: example, target: `${usual}?${name}=${ofHead}` };
  }
  for (const name of [...Object.keys(headers ?? {}), 'Content-Type', 'Content-Encoding', 'Prefer', 'Origin'])
    for (const value of ['x', '"', 'é'])
      yield { method, body: example, target: usual, headers: { [name]: value.repeat(3_000) } };
  if (body !== undefined)
    for (const changed of changesOf(example, SHIP.repeat(15_000)))
      yield { method, body: changed, target: usual };
}

/** A value with each of its parts replaced by a long text, renamed to it, or put into it. */
function* changesOf(value: unknown, long: string): Generator<unknown> {
  yield long;
  yield { [long]: value };
  yield [[{ [long]: [long] }]];
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value as Record<string, unknown>)) {
    for (const changed of changesOf(member, long))
      yield Array.isArray(value) ? [changed] : { ...value, [name]: changed };
    if (!Array.isArray(value)) yield { ...value, [long]: member };
  }
}

describe('a text for a reader', () => {
  it('is cut in its middle, so that it names its subject and its remedy', () => {
    expect(cut('x'.repeat(256))).to.equal('x'.repeat(256));
    expect(cut(`/owner ${'x'.repeat(300)} Correct it.`, 30)).to.equal('/owner xxxxxxxx…xx Correct it.');
    expect(cut('', 30)).to.equal('');
  });

  it('keeps no half of a surrogate pair, and is not cut again', () => {
    for (const shift of ['', 'x', 'xy'])
      for (let longest = 10; longest < 14; longest++) {
        const short = cut(shift + SHIP.repeat(20), longest);
        expect(short, short).to.satisfy(isWellFormed).and.have.property('length').that.is.at.most(longest);
        expect(cut(short, longest)).to.equal(short);
      }
    expect(pointerOf([SHIP.repeat(1_000), 0]))
      .to.satisfy(isWellFormed)
      .and.have.length.below(300);
  });

  it('is cut in the log after secrets were masked, so that no part of one is left', () => {
    const secret = 'the-secret-of-the-log';
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const logger = createLogger({
      level: 'info',
      mask: (text) => text.replaceAll(secret, '***'),
      destination,
    });
    for (let before = 1_980; before <= 2_001; before++)
      logger.info(
        { error: new Error(`${'x'.repeat(before)}${secret}${'y'.repeat(5_000)}`) },
        `${'x'.repeat(before)}${secret}${'y'.repeat(5_000)}`,
      );
    for (const line of lines) {
      expect(line).not.to.match(/the-s|he-log/);
      expect((JSON.parse(line) as { msg: string }).msg.length).to.be.below(4_100);
    }
  });

  it('is escaped in the log where it would change how a line reads, and keeps its value', () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const logger = createLogger({ level: 'info', mask: (text) => text, destination });
    const hostile = 'a\u202eb\u2066c\u200bd\u007f\u009b31m\u2028\u{e0041}é 中 🚢"\\\n';
    logger.info({ path: hostile, [hostile]: 1, error: new Error(hostile) }, hostile);
    const [line = ''] = lines;
    expect(line).not.to.match(/[\p{Cc}\p{Cf}\p{Zl}](?!$)/u);
    expect(line).to.contain('a\\u202eb').and.contain('é 中 🚢');
    const read = JSON.parse(line) as { msg: string; path: string; error: { message: string } };
    expect([read.msg, read.path, read.error.message]).to.deep.equal([hostile, hostile, hostile]);
    expect(read).to.have.property(hostile, 1);
  });
});

describe('long values of callers', () => {
  let api: SubscribedService;
  let credential: object;
  const seen = new Set<string>();
  const exampleOf = ({ body, id }: Operation): object => {
    const [example = {}] = Object.values(body?.examples ?? {});
    return id.endsWith('Credential') ? { ...example, verifiableCredential: credential } : example;
  };

  before(async () => {
    api = await startSubscribedService('SQLite', { API_KEY, WALLET_PRIVATE_KEY: DEPLOYER_KEY });
    const owner = await api.local.account(1);
    const { body } = await create(
      api.service.url,
      { ...minimal, owner, holder: owner },
      { headers: { authorization: `Bearer ${API_KEY}` } },
    );
    credential = body.signedW3CDocument;
  });

  for (const operation of OPERATIONS)
    it(`are cut in the answers of ${operation.id}, and in the log`, async () => {
      const key = operation.access === 'admin' ? ADMIN_API_KEY : API_KEY;
      for (const { method, target, body, headers } of requestsOf(operation, exampleOf(operation))) {
        const hasBody = operation.body !== undefined;
        const response = await fetch(api.service.url + target, {
          method: method.toUpperCase(),
          headers: {
            ...(hasBody && { 'Content-Type': 'application/json' }),
            Authorization: `Bearer ${key}`,
            ...headers,
          },
          ...(hasBody && { body: JSON.stringify(body) }),
        }).catch((error: unknown) => error as Error);
        // A header that HTTP does not allow.
        if (response instanceof Error) continue;
        const text = await response.text();
        seen.add(`${response.status} ${response.headers.get('X-Error-Code')}`);
        for (const [said] of text.matchAll(/"(message|found)":"(\\.|[^"\\])*"/g)) {
          const [words = ''] = Object.values(JSON.parse(`{${said}}`) as Record<string, string>);
          expect(words.length, target.slice(0, 200)).to.be.at.most(LONGEST_MESSAGE);
          expect(words).to.satisfy(isWellFormed);
        }
      }
      for (const line of api.service.log.splice(0)) {
        const text = JSON.stringify(line);
        expect(text.length, text.slice(0, 300)).to.be.at.most(LONGEST_LINE);
        expect(text).to.satisfy(isWellFormed);
      }
    });

  it('are cut in the answer about a pointer of a megabyte', async () => {
    const options = { selectivePointers: [`/credentialSubject/${'x'.repeat(1_000_000)}`] };
    const body = { verifiableCredential: credential, options };
    const { code, message = '' } = await api.call('POST', '/credentials/derive', body);
    expect(code).to.equal('POINTER_MATCHES_NOTHING');
    expect(message.length).to.be.at.most(LONGEST_MESSAGE);
    expect(message).to.match(
      /^The pointer \/credentialSubject\/x+…x+ matches .*\/credentialSubject\/\w+\.$/s,
    );
  });

  it('were refused for many reasons', () => {
    for (const code of [
      '400 QUERY_INVALID',
      '400 REQUEST_FIELD_INVALID',
      '400 SUBSCRIPTION_INVALID',
      '400 REGISTRY_INVALID',
      '400 CREDENTIAL_INVALID',
      '400 TOKEN_ID_INVALID',
      '404 SUBSCRIPTION_UNKNOWN',
      '415 CONTENT_TYPE_WRONG',
    ])
      expect(seen).to.include(code);
  });
});
