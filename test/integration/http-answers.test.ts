import crypto from 'node:crypto';
import { devNull } from 'node:os';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { expect } from 'chai';
import { request } from 'undici';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime, type Time } from '../../service/base/time';
import { BusyError, RequestError } from '../../service/base/errors';
import { PUBLISHED_FILES, publishedPath, readContextFile } from '../../service/base/published-files';
import { loadConfig } from '../../service/config/config';
import { CORS_HEADERS } from '../../service/http/gate';
import type { DocumentType } from '../../service/issuance/credential';
import { keptDocument } from '../../service/issuance/issue-document';
import { preparedDocument } from '../helpers/database/prepared-documents';
import { API_KEY, AUTHORIZATION } from '../helpers/processes/documents-call';
import { mintedDocument, REQUEST, startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';
import { rawRequest } from '../helpers/processes/raw-request';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

const CREATE = 'POST /create/BILL_OF_LADING';
const JSON_BODY = { ...AUTHORIZATION, 'Content-Type': 'application/json' };

/** A request as text. The connection ends with its answer. */
function asking(line: string, headers: Record<string, string | number> = {}, body = ''): string {
  const all = { Host: 'x', Connection: 'close', 'Content-Length': body.length, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}
const creating = (headers: Record<string, string | number>, line = CREATE): string =>
  asking(line, { ...JSON_BODY, ...headers }, REQUEST);
const withKey = (Authorization: string): string => asking(CREATE, { Authorization });
const withIdempotencyKey = (key: string): string => creating({ 'Idempotency-Key': key });

/** All visible ASCII characters. */
const VISIBLE = String.fromCharCode(...Array.from({ length: 94 }, (_, index) => 0x21 + index));

/** Each kind of answer: of a route, of the middleware, and of the server in front of both. */
const SUCCESSES: [status: number, request: string][] = [
  [200, asking('GET /')],
  [200, asking('HEAD /')],
  [200, asking('GET /?q=%E0%A4%A')],
  [200, asking('GET /docs')],
  [200, asking('GET /openapi.json')],
  [200, asking('GET /contexts/bill-of-lading-v1.json')],
  [200, asking('GET /metrics')],
  [200, creating({})],
  [200, creating({ Authorization: `bearer ${API_KEY}` })],
  [200, creating({ Authorization: `BEARER  ${API_KEY}` })],
  // The connection breaks in the middle of the answer.
  [200, creating({}, 'POST /create/LOST')],
  [202, creating({ Prefer: 'respond-async' })],
  [202, creating({ Prefer: 'wait=10, Respond-Async' })],
  [202, creating({ Prefer: 'respond-async; foo=bar' })],
  [200, creating({ Prefer: 'respond-asynchronously' })],
  [200, creating({ Prefer: 'x=respond-async' })],
  [200, creating({ Prefer: '' })],
  [200, withIdempotencyKey('!')],
  [200, withIdempotencyKey(VISIBLE)],
  [200, withIdempotencyKey('"8e03978e-40d5-43dd-bc93-6894a57f9324"')],
  [200, withIdempotencyKey('k'.repeat(255))],
  [204, asking('OPTIONS /')],
  [204, asking('OPTIONS /nothing')],
  [204, asking('OPTIONS /create/BILL_OF_LADING')],
  [304, asking('GET /contexts/bill-of-lading-v1.json', { 'If-None-Match': '*' })],
];

const ONE_TO_255 = /Idempotency-Key must be 1 to 255 visible ASCII characters/;
const NOTHING_HERE = /nothing at this path/;
const INTERNAL = /^Internal server error$/;

const ERRORS: [status: number, code: string, request: string, message?: RegExp][] = [
  [400, 'PATH_MALFORMED', asking('GET /%')],
  [400, 'PATH_MALFORMED', asking('POST /create/%E0%A4%A')],
  [400, 'PATH_MALFORMED', asking('GET /documents/%00')],
  [400, 'PATH_MALFORMED', asking('POST /subscriptions/a%00b/test')],
  [400, 'PATH_MALFORMED', 'GET http://[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
  [400, 'BODY_NOT_JSON', asking(CREATE, JSON_BODY, '{'), /not a valid JSON object/],
  [400, 'BODY_NOT_JSON', asking(CREATE, { ...JSON_BODY, Prefer: 'respond-async' }, '{')],
  [400, 'BODY_NOT_JSON', asking(CREATE, JSON_BODY).replace('Content-Length: 0\r\n', '')],
  [400, 'IDEMPOTENCY_KEY_INVALID', withIdempotencyKey(''), ONE_TO_255],
  [400, 'IDEMPOTENCY_KEY_INVALID', withIdempotencyKey('a b'), ONE_TO_255],
  [400, 'IDEMPOTENCY_KEY_INVALID', withIdempotencyKey('Schlüssel'), ONE_TO_255],
  [400, 'IDEMPOTENCY_KEY_INVALID', withIdempotencyKey('k'.repeat(256)), ONE_TO_255],
  [400, 'IDEMPOTENCY_KEY_INVALID', withIdempotencyKey('a\r\nIdempotency-Key: a'), ONE_TO_255],
  [400, 'SUBSCRIPTION_INVALID', creating({}, 'POST /create/WRONG'), /^\/a~1b\/0 is wrong\. Correct it\.$/],
  [401, 'API_KEY_WRONG', asking(CREATE), /Authorization: Bearer/],
  [401, 'API_KEY_WRONG', withKey('Bearer ')],
  [401, 'API_KEY_WRONG', withKey('Bearer wrong')],
  [401, 'API_KEY_WRONG', withKey(`Bearer ${API_KEY.slice(0, -1)}`)],
  [401, 'API_KEY_WRONG', withKey(`Bearer ${API_KEY}r`)],
  [401, 'API_KEY_WRONG', withKey(API_KEY)],
  [401, 'API_KEY_WRONG', withKey(`Basic ${API_KEY}`)],
  [404, 'NOT_FOUND', asking('GET /nothing'), NOTHING_HERE],
  [404, 'NOT_FOUND', asking('PROPFIND /nothing'), NOTHING_HERE],
  [404, 'NOT_FOUND', asking('GET /create'), NOTHING_HERE],
  [404, 'NOT_FOUND', asking('GET /contexts/../package.json'), NOTHING_HERE],
  [404, 'NOT_FOUND', asking('GET /consoles', { Expect: 'tea' }), NOTHING_HERE],
  [405, 'METHOD_NOT_ALLOWED', asking('DELETE /'), /does not answer that method/],
  [405, 'METHOD_NOT_ALLOWED', asking('PROPFIND /')],
  [405, 'METHOD_NOT_ALLOWED', asking('GET /create/BILL_OF_LADING'), /does not answer that method/],
  // The body does not arrive at the least rate.
  [408, 'BODY_TOO_SLOW', asking(CREATE, { ...JSON_BODY, 'Content-Length': 100 })],
  [
    413,
    'BODY_TOO_LARGE',
    asking(CREATE, { ...JSON_BODY, 'Content-Length': 50 * 1024 * 1024 + 1 }),
    /than 50 MB/,
  ],
  [415, 'CONTENT_TYPE_WRONG', asking(CREATE, AUTHORIZATION), /application\/json/],
  [500, 'DID_DOCUMENT_UNREADABLE', asking('GET /.well-known/did.json'), INTERNAL],
  [503, 'BUSY', creating({}, 'POST /create/BUSY'), /^Too many\.$/],
  // Node.js answers these; the application does not see them.
  [408, 'REQUEST_TIMEOUT', 'GET / HTTP/1.1\r\n'],
  [400, 'REQUEST_MALFORMED', 'rubbish\r\n\r\n'],
  [400, 'REQUEST_MALFORMED', 'FOOBAR / HTTP/1.1\r\n\r\n'],
  [400, 'REQUEST_MALFORMED', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'],
  [400, 'REQUEST_MALFORMED', 'GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\nConnection: close\r\n\r\n'],
  [400, 'REQUEST_MALFORMED', 'GET / HTTP/1.0\r\nHost: x\r\nhost: y\r\n\r\n'],
  [431, 'HEADERS_TOO_LARGE', asking('GET /', { 'X-Long': 'x'.repeat(20_000) })],
];

/** Parts of a document that cannot be read. */
async function* lost(): AsyncGenerator<Uint8Array> {
  yield await Promise.reject(new Error('disk I/O error'));
}

/** Every wait is over in the next turn. */
const HASTY: Time = {
  ...systemTime,
  later(_, work) {
    const turn = setImmediate(work);
    return () => clearImmediate(turn);
  },
};

describe('the answers of the HTTP API', () => {
  const folder = temporaryFolder();
  const didDocumentPath = join(folder.path, 'did.json');
  /** A document that is kept, and whose mint takes too long. */
  const slow = preparedDocument(10);
  let app: RunningHttpApp;
  let health: 'ok' | 'failing';
  let metrics: () => Promise<string>;

  before(async () => {
    let now = 0;
    const never = new Promise<never>(() => undefined);
    const issuance = { state: 'signed', txHash: undefined, failure: undefined, createdAt: 0 } as const;
    const notAsked = (): Promise<never> => Promise.reject(new Error('not asked'));
    app = await startHttpApp(
      {
        apiKey: API_KEY,
        // Each wrong key comes an hour after the one before it.
        time: { ...systemTime, now: () => (now += 3_600_000) },
        didDocumentPath,
        issuing: {
          acceptedType: (documentId) => documentId as DocumentType,
          async issue({ documentType }) {
            const documentId: string = documentType;
            if (documentId === 'BUSY') throw new BusyError('Too many.', 60_000);
            if (documentId === 'WRONG')
              throw new RequestError('SUBSCRIPTION_INVALID', '/a~1b/0 is wrong. Correct it.');
            if (documentId === 'LOST') return mintedDocument({ length: 2, parts: lost() });
            if (!['SLOW', 'UNSIGNED'].includes(documentId)) return mintedDocument();
            const minting = {
              queue: { mint: () => never },
              journal: { documentOf: () => never },
              time: HASTY,
            };
            const failing = {
              ready: () => never,
              follow: () => never,
              failure: async () => 'SIGNER_UNREACHABLE' as const,
            };
            const signers = documentId === 'UNSIGNED' ? { wallet: failing } : {};
            return keptDocument({ ...minting, signers }, { ...slow, ...issuance, requestHash: undefined });
          },
        },
        issuedDocuments: { find: notAsked, documentOf: notAsked, list: notAsked },
        health: async () => ({ status: health, feeds: [], issuing: undefined }),
        metrics: () => metrics(),
        bodyLimits: { least: { bytes: 64 * 1024, withinMs: 300 } },
      },
      { requestTimeout: 600, connectionsCheckingInterval: 50 },
    );
  });
  beforeEach(() => {
    health = 'ok';
    metrics = async () => '';
  });
  const get = (path: string, init: RequestInit = {}): Promise<Response> => fetch(app.url + path, init);
  const codeOf = ({ status, headers }: Response) => [status, headers.get('X-Error-Code')];
  /** The status, the headers and the body of the answer, after a check of the headers of every answer. */
  async function answerTo(bytes: string) {
    const raw = await rawRequest(app.url, bytes);
    await raw.ended();
    const [, status = '', lines = '', body = ''] =
      /^HTTP\/1\.1 (\d+) .*\r\n([^]*?)\r\n\r\n([^]*)$/.exec(raw.answer()) ?? [];
    const headers = new Headers(
      lines.split('\r\n').map((line) => line.split(/: (.*)/, 2) as [string, string]),
    );
    for (const [name, value] of Object.entries(CORS_HEADERS)) expect(headers.get(name), name).to.equal(value);
    expect(headers.get('X-Request-Id')).to.match(/^[\w-]+$/);
    return { status: Number(status), headers, body };
  }
  /** Without what all requests have. */
  const shown = (bytes: string): string => {
    const usual = /(Host: x|Connection: close|Content-Length: (0|131)|Content-Type: application\/json)\r\n/g;
    const own = bytes.replace(REQUEST, '').replace(`Authorization: Bearer ${API_KEY}\r\n`, '');
    return JSON.stringify(own.replace(usual, '').trimEnd().slice(0, 120));
  };

  for (const [status, bytes] of SUCCESSES)
    it(`have the status ${status} and no code for ${shown(bytes)}`, async () => {
      const answer = await answerTo(bytes);
      expect([answer.status, answer.headers.get('X-Error-Code')]).to.deep.equal([status, null]);
      expect(answer.headers.get('Preference-Applied')).to.equal(status === 202 ? 'respond-async' : null);
      if (status === 204)
        expect(answer.headers.get('Access-Control-Allow-Methods')).to.equal('GET, HEAD, POST, OPTIONS');
    });

  for (const [status, code, bytes, message = /./] of ERRORS)
    it(`have the status ${status} and ${code} for ${shown(bytes)}`, async () => {
      const { headers, body, ...answer } = await answerTo(bytes);
      expect([answer.status, headers.get('X-Error-Code')]).to.deep.equal([status, code]);
      const { error, ...others } = JSON.parse(body) as { error: { message: string } };
      expect(others).to.deep.equal({});
      expect(Object.keys(error)).to.deep.equal(['message']);
      expect(error.message).to.match(message);
      expect(headers.get('Preference-Applied')).to.equal(null);
      if (status === 401) expect(headers.get('WWW-Authenticate')).to.equal('Bearer');
      expect(headers.get('Retry-After')).to.equal(status === 503 ? '60' : null);
      expect(headers.get('Allow')).to.equal(
        status !== 405 ? null : bytes.includes('/create') ? 'POST' : 'HEAD, GET',
      );
    });

  it('compare every wrong key in constant time, whatever its length', async () => {
    const { mock: comparisons } = mock.method(crypto, 'timingSafeEqual');
    stopLater('the count of comparisons', () => comparisons.restore());
    for (const [, , bytes] of ERRORS.filter(([, code]) => code === 'API_KEY_WRONG')) {
      comparisons.resetCalls();
      await answerTo(bytes);
      expect(comparisons.callCount(), shown(bytes)).to.equal(1);
    }
  });

  it('slow wrong keys down, one after the other and at once, but never the right one', async () => {
    let time = 0;
    await using slowing = await startHttpApp({ apiKey: API_KEY, time: { ...systemTime, now: () => time } });
    const answered = async (Authorization: string): Promise<string> => {
      const headers = { ...JSON_BODY, Authorization };
      const answer = await fetch(`${slowing.url}/create/X`, { method: 'POST', headers, body: REQUEST });
      return [answer.status, answer.headers.get('X-Error-Code'), answer.headers.get('Retry-After')].join(' ');
    };
    const isRight = async (): Promise<void> => {
      expect(await answered(`Bearer ${API_KEY}`)).to.equal('500 INTERNAL ');
    };
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      const guesses = Array.from({ length: 50 }, (_, guess) => answered(`bearer  guess-${guess}`));
      const answers = [...new Set(await Promise.all(guesses))].sort();
      expect(answers).to.deep.equal(['401 API_KEY_WRONG ', `429 KEY_ATTEMPTS ${seconds}`]);
      await isRight();
      // Without a key nothing is guessed.
      for (const none of ['', 'Bearer', 'Basic eDp5']) expect(await answered(none)).to.match(/^401 /);
      time += seconds * 1_000 - 1;
      expect(await answered('Bearer guess')).to.equal('429 KEY_ATTEMPTS 1');
      await isRight();
      time += 1;
    }
  });

  it('have the headers of every answer whose names are documented', () => {
    expect(CORS_HEADERS).to.deep.equal({
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Headers': 'Origin, X-Requested-With, Content-Type, Accept',
      'Access-Control-Expose-Headers': 'X-Error-Code, X-Request-Id, X-Token-Id, Retry-After',
    });
  });

  it('greet in plain text', async () => {
    const response = await get('/');
    expect(response.headers.get('Content-Type')).to.match(/^text\/plain/);
    expect(await response.text()).not.to.equal('');
  });

  it('keep a well-formed X-Request-Id of the caller and replace any other', async () => {
    const idOf = async (sent: string): Promise<string | null> =>
      (await get('/', { headers: { 'X-Request-Id': sent } })).headers.get('X-Request-Id');
    expect(await idOf('order-4711')).to.equal('order-4711');
    expect(await idOf('a"b{c}')).to.match(/^[0-9a-f-]{36}$/);
  });

  it('have INTERNAL for an error of a library, whose code is in the log, to HEAD too', async () => {
    metrics = () => Promise.reject(Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' }));
    for (const method of ['GET', 'HEAD'])
      expect(codeOf(await get('/metrics', { method }))).to.deep.equal([500, 'INTERNAL']);
    expect(codeOf(await get('/nothing', { method: 'HEAD' }))).to.deep.equal([404, 'NOT_FOUND']);
    expect(app.log.findLast(({ level }) => level === 'error')).to.include({ code: 'SQLITE_IOERR' });
  });

  it('have UNHEALTHY if GET /health is not healthy, which keeps its body', async () => {
    expect(codeOf(await get('/health'))).to.deep.equal([200, null]);
    health = 'failing';
    const { status, headers, body } = await answerTo(asking('GET /health'));
    expect([status, headers.get('X-Error-Code')]).to.deep.equal([503, 'UNHEALTHY']);
    expect(JSON.parse(body)).to.deep.equal({ status: 'failing', feeds: [] });
  });

  it('have MINT_STILL_WAITING, with the token in X-Token-Id, when a mint takes too long', async () => {
    const { status, headers, body } = await answerTo(creating({}, 'POST /create/SLOW'));
    expect([status, headers.get('X-Error-Code')]).to.deep.equal([500, 'MINT_STILL_WAITING']);
    expect(JSON.parse(body)).to.deep.equal({ error: { message: 'Internal server error' } });
    expect(headers.get('X-Token-Id')).to.equal(slow.tokenId);
  });

  it('have the code of a signer that is away, instead of it, and say when to ask again', async () => {
    const { status, headers, body } = await answerTo(creating({}, 'POST /create/UNSIGNED'));
    expect([status, headers.get('X-Error-Code')]).to.deep.equal([503, 'SIGNER_UNREACHABLE']);
    expect(JSON.parse(body)).to.have.nested.property('error.message').that.contains('is stored');
    expect(headers.get('X-Token-Id')).to.equal(slow.tokenId);
    expect(headers.get('Retry-After')).to.equal('10');
  });

  it('have a stack only in development', async () => {
    const acceptedType = (): never => {
      throw new Error('"INVOICE" is not supported');
    };
    const issuing = { acceptedType, issue: acceptedType };
    const { url } = await startHttpApp({ development: true, issuing });
    const answer = await fetch(`${url}/create/INVOICE`, { method: 'POST' });
    const { error } = (await answer.json()) as { error: { message: string; stack: string } };
    expect([answer.status, error.message]).to.deep.equal([500, 'Internal server error']);
    expect(error.stack).to.match(/"INVOICE" is not supported[^]*at /);
  });

  it('have the DID document as it is in its file, without a key', async () => {
    writeFileSync(didDocumentPath, '{"id":"did:web:localhost"}');
    const response = await get('/.well-known/did.json');
    expect(response.headers.get('Content-Type')).to.match(/^application\/json/);
    expect(await response.json()).to.deep.equal({ id: 'did:web:localhost' });
  });

  for (const content of ['{"id": "did:web', '"did:web:localhost"'])
    it(`have DID_DOCUMENT_UNREADABLE, and its path in the log, if its file is ${content}`, async () => {
      writeFileSync(didDocumentPath, content);
      expect(codeOf(await get('/.well-known/did.json'))).to.deep.equal([500, 'DID_DOCUMENT_UNREADABLE']);
      const line = app.log.findLast(({ code }) => code === 'DID_DOCUMENT_UNREADABLE');
      expect(JSON.stringify(line)).to.contain(didDocumentPath);
    });

  for (const [file, mediaType] of Object.entries(PUBLISHED_FILES))
    it(`have ${file} byte for byte, cacheable as immutable, and 304 to its ETag`, async () => {
      const response = await get(publishedPath(file));
      expect(response.headers.get('Content-Type')).to.match(new RegExp(`^${mediaType.replace('+', '\\+')}`));
      expect(response.headers.get('Cache-Control')).to.equal('public, max-age=31536000, immutable');
      const bytes = Buffer.from(await response.arrayBuffer());
      expect(bytes).to.deep.equal(readContextFile(file));
      const head = await get(publishedPath(file), { method: 'HEAD' });
      expect([head.status, head.headers.get('Content-Length')]).to.deep.equal([200, String(bytes.length)]);
      // Not with fetch(), which adds `Cache-Control: no-cache` to such a request.
      const again = async (tag = '') => {
        const headers = { 'If-None-Match': tag };
        const answer = await request(app.url + publishedPath(file), { headers });
        return [answer.statusCode, (await answer.body.text()).length, answer.headers['cache-control']];
      };
      const etag = response.headers.get('ETag') ?? '';
      expect(await again(etag)).to.deep.equal([304, 0, 'public, max-age=31536000, immutable']);
      expect((await again('"another"'))[0]).to.equal(200);
      expect((await get(publishedPath(file), { method: 'DELETE' })).status).to.equal(405);
    });

  it('have the Bill of Lading context as JSON-LD at the URL in credentials', async () => {
    const settings = { ENV_FILE: devNull, NET: '31337', DOMAIN: 'a.example' };
    const { billOfLadingContextUrl = '' } = loadConfig(settings);
    const response = await get(new URL(billOfLadingContextUrl).pathname);
    expect(response.headers.get('Content-Type')).to.match(/^application\/ld\+json/);
    expect(await response.json()).to.have.nested.property('@context.BillOfLading');
  });
});

describe('the metrics of answers', () => {
  it('have the operation and the status, and nothing else of what callers send', async () => {
    const lifecycle = createLifecycle();
    const told: string[] = [];
    lifecycle.on('answered', (operation, status) => told.push(`${operation} ${status}`));
    const { url } = await startHttpApp({ apiKey: API_KEY, lifecycle });
    await fetch(`${url}/?q=secret`);
    await fetch(`${url}/secret`);
    await fetch(`${url}/create/SECRET`, { method: 'POST' });
    expect(told).to.deep.equal(['GET / 200', 'none 404', 'POST /create/{documentId} 401']);
  });
});
