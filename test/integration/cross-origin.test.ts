import { expect } from 'chai';
import { BusyError } from '../../service/base/errors';
import { listen, type HttpServer } from '../../service/http/server';
import { AUTHORIZATION, API_KEY } from '../helpers/processes/documents-call';
import { accepting, mintedDocument, newHttpApp, REQUEST } from '../helpers/processes/http-app';
import { rawRequest } from '../helpers/processes/raw-request';

const CREATE = 'POST /create/BILL_OF_LADING';
const JSON_BODY = { ...AUTHORIZATION, 'Content-Type': 'application/json' };
const ASYNC = { ...JSON_BODY, Prefer: 'respond-async' };

/** A request as text. The connection ends with its answer. */
function requestOf(line: string, headers: Record<string, string | number> = {}, body = ''): string {
  const all = { Host: 'x', Connection: 'close', 'Content-Length': body.length, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** Each kind of answer: of a route, of the middleware, and of the server in front of both. */
const REQUESTS: [number, string][] = [
  [200, requestOf('GET /')],
  [200, requestOf('HEAD /')],
  [200, requestOf('GET /docs')],
  [200, requestOf('GET /openapi.json')],
  [200, requestOf('GET /contexts/bill-of-lading-v1.json')],
  [200, requestOf('GET /metrics')],
  [200, requestOf(CREATE, JSON_BODY, REQUEST)],
  [202, requestOf(CREATE, ASYNC, REQUEST)],
  [204, requestOf('OPTIONS /nothing')],
  [304, requestOf('GET /contexts/bill-of-lading-v1.json', { 'If-None-Match': '*' })],
  [400, requestOf('GET /%')],
  [400, requestOf(CREATE, JSON_BODY, '{')],
  [401, requestOf(CREATE)],
  [404, requestOf('GET /nothing')],
  [404, requestOf('GET /consoles', { Expect: 'tea' })],
  [405, requestOf('DELETE /')],
  [413, requestOf(CREATE, { ...JSON_BODY, 'Content-Length': 50 * 1024 * 1024 + 1 })],
  [415, requestOf(CREATE, AUTHORIZATION)],
  [500, requestOf('GET /.well-known/did.json')],
  [503, requestOf('GET /health')],
  [503, requestOf('POST /create/BUSY', JSON_BODY, REQUEST)],
  // The connection breaks in the middle of the answer.
  [200, requestOf('POST /create/LOST', JSON_BODY, REQUEST)],
  // The body does not arrive at the least rate.
  [408, requestOf(CREATE, { ...JSON_BODY, 'Content-Length': 100 })],
  // Node.js answers these; the application does not see them.
  [408, 'GET / HTTP/1.1\r\n'],
  [400, 'rubbish\r\n\r\n'],
  [400, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'],
  [431, requestOf('GET /', { 'X-Long': 'x'.repeat(20_000) })],
];

/** Parts of a document that cannot be read. */
async function* lost(): AsyncGenerator<Uint8Array> {
  yield await Promise.reject(new Error('disk I/O error'));
}

describe('the cross-origin headers', () => {
  let server: HttpServer;

  before(async () => {
    const document = mintedDocument({ length: 2, parts: [Buffer.from('{}')] });
    const app = newHttpApp({
      apiKey: API_KEY,
      acceptDocument: (documentId) =>
        accepting(async () => {
          if (documentId === 'BUSY') throw new BusyError('Too many.', 1_000);
          return documentId === 'LOST' ? mintedDocument({ length: 2, parts: lost() }) : document;
        })(documentId),
      issuedDocuments: {
        find: () => Promise.reject(new Error('not asked')),
        documentOf: () => Promise.reject(new Error('not asked')),
        list: () => Promise.reject(new Error('not asked')),
      },
      health: async () => ({ isHealthy: false, feeds: [], issuing: undefined }),
      bodyLimits: { least: { bytes: 64 * 1024, withinMs: 300 } },
    });
    const handle = app.callback();
    server = await listen((request, response) => void handle(request, response), '127.0.0.1', 0, {
      requestTimeout: 600,
      connectionsCheckingInterval: 50,
    });
  });

  after(() => server.close());

  for (const [status, request] of REQUESTS)
    it(`are on the answer ${status} to ${request.slice(0, request.indexOf('\r\n'))}`, async () => {
      const raw = await rawRequest(server.url, request);
      await raw.ended();
      expect(raw.answer())
        .to.match(new RegExp(`^HTTP/1\\.1 ${status} `))
        .and.match(/\r\nAccess-Control-Allow-Origin: \*\r\n/i)
        .and.match(/\r\nAccess-Control-Allow-Headers: Origin, X-Requested-With, Content-Type, Accept\r\n/i);
    });
});
