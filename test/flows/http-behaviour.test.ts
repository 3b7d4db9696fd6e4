import { rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { request } from 'undici';
import { loadConfig } from '../../service/config/config';
import { PUBLISHED_FILES, publishedPath, readContextFile } from '../../service/base/published-files';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { startService, type RunningService } from '../helpers/processes/running-service';

const LIMIT_BYTES = 50 * 1024 * 1024;

/** Sends the text as it is, and returns the whole answer. */
async function sendRaw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  const chunks: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('the HTTP side of the creator service', () => {
  let local: LocalSetup;
  let service: RunningService;

  before(async () => {
    local = await createLocalSetup();
    service = await startService(local.settings);
  });

  after(async () => {
    await service?.stop();
    await local?.stop();
  });

  const call = (path: string, init: RequestInit = {}) => fetch(`${service.url}${path}`, init);
  const json = { 'Content-Type': 'application/json' };

  /** Expects the status, body and code of an error, and the headers of every answer. */
  async function isError(response: Response, status: number, code: string, message: RegExp): Promise<void> {
    expect(response.status).to.equal(status);
    const body = (await response.json()) as { error: { message: string } };
    expect(Object.keys(body)).to.deep.equal(['error']);
    expect(body.error.message).to.match(message);
    expect(response.headers.get('X-Error-Code')).to.equal(code);
    hasCommonHeaders(response);
  }

  function hasCommonHeaders({ headers }: Response): void {
    expect(headers.get('Access-Control-Allow-Origin')).to.equal('*');
    expect(headers.get('Access-Control-Allow-Headers')).to.equal(
      'Origin, X-Requested-With, Content-Type, Accept',
    );
    expect(headers.get('Access-Control-Expose-Headers')).to.equal(
      'X-Error-Code, X-Request-Id, X-Token-Id, Retry-After',
    );
    expect(headers.get('X-Request-Id')).to.match(/^[\w.:-]+$/);
  }

  it('answers / with a greeting', async () => {
    const response = await call('/');
    expect(response.status).to.equal(200);
    expect(response.headers.get('Content-Type')).to.match(/^text\/plain/);
    expect(await response.text()).not.to.equal('');
    hasCommonHeaders(response);
  });

  it('serves the DID document that setup wrote', async () => {
    const response = await call('/.well-known/did.json');
    expect(response.status).to.equal(200);
    expect(response.headers.get('Content-Type')).to.match(/^application\/json/);
    hasCommonHeaders(response);
    const did = 'did:web:localhost%3A3000';
    const document = (await response.json()) as { verificationMethod: { publicKeyMultibase: string }[] };
    const publicKeyMultibase = document.verificationMethod[0]?.publicKeyMultibase;
    expect(publicKeyMultibase).to.match(/^zDn/);
    const methods = [`${did}#keys-1`];
    expect(document).to.deep.equal({
      '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/multikey/v1'],
      id: did,
      verificationMethod: [{ type: 'Multikey', id: `${did}#keys-1`, controller: did, publicKeyMultibase }],
      authentication: methods,
      assertionMethod: methods,
      capabilityInvocation: methods,
      capabilityDelegation: methods,
    });
  });

  for (const [what, content] of [
    ['is missing', undefined],
    ['is not JSON', '{"id": "did:web'],
    ['is not an object', '"did:web:localhost"'],
  ] as const) {
    it(`answers 500 when the file did.json ${what}, and logs its path`, async () => {
      const path = join(local.folder, 'broken-did.json');
      if (content !== undefined) writeFileSync(path, content);
      const settings = {
        ...local.settings,
        DID_DOCUMENT_PATH: path,
        DATA_DIR: join(local.folder, 'did-data'),
      };
      const broken = await startService(settings);
      try {
        const response = await fetch(`${broken.url}/.well-known/did.json`);
        await isError(response, 500, 'DID_DOCUMENT_UNREADABLE', /^Internal server error$/);
        const line = broken.log.find(({ code }) => code === 'DID_DOCUMENT_UNREADABLE');
        expect(JSON.stringify(line)).to.contain(path);
      } finally {
        await broken.stop();
        rmSync(path, { force: true });
      }
    });
  }

  for (const [file, mediaType] of Object.entries(PUBLISHED_FILES)) {
    const path = publishedPath(file);

    it(`serves ${file} byte for byte, cacheable as immutable`, async () => {
      const response = await call(path);
      expect(response.status).to.equal(200);
      expect(response.headers.get('Content-Type')).to.match(new RegExp(`^${mediaType.replace('+', '\\+')}`));
      expect(response.headers.get('Cache-Control')).to.equal('public, max-age=31536000, immutable');
      hasCommonHeaders(response);
      expect(Buffer.from(await response.arrayBuffer())).to.deep.equal(readContextFile(file));
    });

    it(`answers 304 to the ETag of ${file}, answers HEAD and OPTIONS, and refuses DELETE`, async () => {
      const head = await call(path, { method: 'HEAD' });
      expect(head.status).to.equal(200);
      expect(head.headers.get('Content-Length')).to.equal(String(readContextFile(file).length));
      const etag = head.headers.get('ETag') ?? '';
      // Not with fetch(), which adds `Cache-Control: no-cache` to such a request.
      const again = async (tag: string) => {
        const answer = await request(`${service.url}${path}`, { headers: { 'If-None-Match': tag } });
        return [answer.statusCode, (await answer.body.text()).length, answer.headers['cache-control']];
      };
      expect(await again(etag)).to.deep.equal([304, 0, 'public, max-age=31536000, immutable']);
      expect((await again('"another"'))[0]).to.equal(200);
      expect((await call(path, { method: 'OPTIONS' })).status).to.equal(204);
      expect((await call(path, { method: 'DELETE' })).status).to.equal(405);
    });
  }

  it('serves the Bill of Lading context as JSON-LD at the URL in credentials', async () => {
    const url = new URL(loadConfig(local.settings).billOfLadingContextUrl ?? '');
    const response = await call(url.pathname);
    expect(url.pathname).to.equal('/contexts/bill-of-lading-v1.json');
    expect(response.headers.get('Content-Type')).to.match(/^application\/ld\+json/);
    expect(await response.json()).to.have.nested.property('@context.BillOfLading');
  });

  it('answers 404 for an unknown path', async () => {
    await isError(await call('/nothing'), 404, 'NOT_FOUND', /nothing at this path/);
    await isError(await call('/create'), 404, 'NOT_FOUND', /nothing at this path/);
    await isError(await call('/contexts/../package.json'), 404, 'NOT_FOUND', /nothing at this path/);
  });

  it('answers 405 for a method that a path does not have, and names the allowed ones', async () => {
    const response = await call('/create/BILL_OF_LADING');
    await isError(response, 405, 'METHOD_NOT_ALLOWED', /does not answer that method/);
    expect(response.headers.get('Allow')).to.equal('POST');
    await isError(
      await call('/', { method: 'DELETE' }),
      405,
      'METHOD_NOT_ALLOWED',
      /does not answer that method/,
    );
    await isError(await call('/', { method: 'PROPFIND' }), 405, 'METHOD_NOT_ALLOWED', /method/);
    await isError(await call('/nothing', { method: 'PROPFIND' }), 404, 'NOT_FOUND', /nothing at this path/);
  });

  it('answers OPTIONS for any path with 204 and the methods', async () => {
    for (const path of ['/', '/create/BILL_OF_LADING', '/nothing']) {
      const response = await call(path, { method: 'OPTIONS' });
      expect(response.status).to.equal(204);
      expect(await response.text()).to.equal('');
      expect(response.headers.get('Access-Control-Allow-Methods')).to.equal('GET, HEAD, POST, OPTIONS');
      hasCommonHeaders(response);
    }
  });

  for (const body of [
    '{"owner": ',
    '',
    'null',
    '"text"',
    '5',
    '[]',
    '[1, 2',
    '{"__proto__": {"owner": "x"}}',
  ]) {
    it(`answers 400 for the body ${body || '(empty)'}`, async () => {
      await isError(
        await call('/create/BILL_OF_LADING', { method: 'POST', headers: json, body }),
        400,
        'BODY_NOT_JSON',
        /not a valid JSON object/,
      );
    });
  }

  it('answers 415 for content types other than JSON', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
    ]) {
      const headers = { 'Content-Type': type };
      await isError(
        await call('/create/BILL_OF_LADING', { method: 'POST', headers, body: '{}' }),
        415,
        'CONTENT_TYPE_WRONG',
        /application\/json/,
      );
    }
  });

  it('accepts application/json with parameters', async () => {
    const headers = { 'Content-Type': 'application/json; charset=utf-8' };
    const response = await call('/create/BILL_OF_LADING', { method: 'POST', headers, body: '{}' });
    await isError(response, 400, 'REQUEST_FIELD_INVALID', /^\/credentialSubject must be an object/);
  });

  it('accepts one Idempotency-Key of 1 to 255 visible ASCII characters', async () => {
    const post = (key: string): Promise<Response> =>
      call('/create/BILL_OF_LADING', {
        method: 'POST',
        headers: { ...json, 'Idempotency-Key': key },
        body: '{}',
      });
    for (const key of ['!', '~', '"8e03978e-40d5-43dd-bc93-6894a57f9324"', 'k'.repeat(255)])
      await isError(await post(key), 400, 'REQUEST_FIELD_INVALID', /^\/credentialSubject /);
    for (const key of ['', 'a b', 'k'.repeat(256), 'clé'])
      await isError(
        await post(key),
        400,
        'IDEMPOTENCY_KEY_INVALID',
        /Idempotency-Key must be 1 to 255 visible ASCII characters/,
      );
    const twice = 'Idempotency-Key: a\r\nIdempotency-Key: a\r\nConnection: close\r\n';
    const answer = await sendRaw(
      Number(new URL(service.url).port),
      `POST /create/BILL_OF_LADING HTTP/1.1\r\nHost: x\r\n${twice}Content-Length: 0\r\n\r\n`,
    );
    expect(answer).to.match(/^HTTP\/1\.1 400 /);
  });

  it('reads a body of exactly 50 MB and answers 413 for one byte more', async () => {
    const send = (bytes: number): Promise<Response> => {
      const body = `{"remarks":"${'x'.repeat(bytes - '{"remarks":""}'.length)}"}`;
      return call('/create/BILL_OF_LADING', { method: 'POST', headers: json, body });
    };
    await isError(await send(LIMIT_BYTES), 400, 'REQUEST_FIELD_INVALID', /^\/credentialSubject /);
    await isError(await send(LIMIT_BYTES + 1), 413, 'BODY_TOO_LARGE', /larger than 50 MB/);
  });

  it('answers 413 to a larger body of undeclared length', async () => {
    async function* tooMuch(): AsyncGenerator<Buffer> {
      for (let megabyte = 0; megabyte <= 50; megabyte++) yield Buffer.alloc(1024 * 1024, '[');
    }
    const answer = await request(`${service.url}/create/BILL_OF_LADING`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Readable.from(tooMuch()),
    });
    expect(answer.statusCode).to.equal(413);
    expect(await answer.body.json()).to.deep.equal({ error: { message: 'The body is larger than 50 MB.' } });
  });

  it('answers invalid HTTP and invalid targets with the same form of error', async () => {
    const { port } = new URL(service.url);
    for (const [text, status, code] of [
      ['FOOBAR / HTTP/1.1\r\n\r\n', 400, 'REQUEST_MALFORMED'],
      ['GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'REQUEST_MALFORMED'],
      ['GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\nConnection: close\r\n\r\n', 400, 'REQUEST_MALFORMED'],
      ['GET / HTTP/1.0\r\nHost: x\r\nhost: y\r\n\r\n', 400, 'REQUEST_MALFORMED'],
      [`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
      ['GET http://[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400, 'PATH_MALFORMED'],
      ['GET /no HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n', 404, 'NOT_FOUND'],
    ] as const) {
      const answer = await sendRaw(Number(port), text);
      expect(answer).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer)
        .to.match(/\r\nAccess-Control-Allow-Origin: \*\r\n/i)
        .and.match(/\r\nX-Request-Id: [\w-]+\r\n/i)
        .and.match(new RegExp(`\\r\\nX-Error-Code: ${code}\\r\\n`));
      expect(answer).to.match(/\r\n\r\n\{"error":\{"message":".+"\}\}$/);
    }
  });

  it('keeps a well-formed X-Request-Id of the caller and replaces any other', async () => {
    const sent = await call('/', { headers: { 'X-Request-Id': 'order-4711' } });
    expect(sent.headers.get('X-Request-Id')).to.equal('order-4711');
    const odd = await call('/', { headers: { 'X-Request-Id': 'a"b{c}' } });
    expect(odd.headers.get('X-Request-Id')).to.match(/^[0-9a-f-]{36}$/);
  });

  it('still answers after all of these requests', async () => {
    expect((await call('/')).status).to.equal(200);
  });

  describe('with API_KEY set', () => {
    let guarded: RunningService;
    before(async () => {
      const settings = {
        ...local.settings,
        API_KEY: 'correct-horse-battery',
        DATA_DIR: join(local.folder, 'guarded'),
      };
      guarded = await startService(settings);
    });
    after(() => guarded?.stop());

    const post = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${guarded.url}/create/BILL_OF_LADING`, {
        method: 'POST',
        headers: { ...json, ...headers },
        body: '{}',
      });

    it('answers 401 to POST /create without the key or with a wrong one', async () => {
      for (const headers of [
        {},
        { Authorization: 'Bearer wrong' },
        { Authorization: 'correct-horse-battery' },
        { Authorization: 'Basic correct-horse-battery' },
      ]) {
        const response = await post(headers);
        expect(response.headers.get('WWW-Authenticate')).to.equal('Bearer');
        await isError(response, 401, 'API_KEY_WRONG', /Authorization: Bearer/);
      }
    });

    it('accepts the key with the scheme in any case, and serves did.json without the key', async () => {
      for (const scheme of ['Bearer', 'bearer', 'BEARER '])
        expect((await post({ Authorization: `${scheme} correct-horse-battery` })).status).to.equal(400);
      expect((await fetch(`${guarded.url}/.well-known/did.json`)).status).to.equal(200);
    });
  });
});
