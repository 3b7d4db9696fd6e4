import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { createBody } from '../../service/http/routes/documents';
import { parseBody } from '../../service/issuance/parse-body';
import { eventually } from '../helpers/eventually';
import {
  accepting,
  mintedDocument,
  REQUEST,
  startHttpApp,
  type RunningHttpApp,
} from '../helpers/processes/http-app';
import { rawCreate, rawRequest, textOf } from '../helpers/processes/raw-request';

const MEGABYTE = 1024 * 1024;
const LARGE = MEGABYTE + 1;
const SMALL = 64 * 1024;
const MINUTE_MS = 60_000;
const json = { 'Content-Type': 'application/json' };

/** A request of the right shape, of this many bytes. */
function bodyOf(bytes: number): string {
  const text = (remarks: string): string => `{"remarks":"${remarks}",${REQUEST.slice(1)}`;
  return text('x'.repeat(bytes - text('').length));
}

describe('bodies of POST /create', () => {
  let app: RunningHttpApp;
  /** Bodies being processed; each continues when its function is called. */
  let working: (() => void)[];

  beforeEach(() => start(400));

  async function start(waitMs: number): Promise<void> {
    working = [];
    app = await startHttpApp({
      bodyLimits: {
        large: { permits: 2, waiting: 2, waitMs },
        medium: { permits: 3, waiting: 1, waitMs },
      },
      issuing: accepting(async ({ body }) => {
        const signed = Buffer.from(JSON.stringify({ id: 'x', body: parseBody(body) }));
        await new Promise<void>((resolve) => working.push(resolve));
        return mintedDocument({ length: signed.length, parts: [signed] });
      }),
    });
  }

  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    fetch(`${app.url}/create/BILL_OF_LADING`, { method: 'POST', headers: { ...json, ...headers }, body });
  const atWork = (count: number): Promise<unknown> =>
    eventually(`${count} at work`, () => working.length === count, { everyMs: 2 });
  /** By then the server knows all that arrived before these small requests. */
  const othersAreAnswered = async (): Promise<void> => {
    for (let times = 0; times < 3; times++) await (await fetch(app.url)).text();
  };
  const finishAll = async (answers: Promise<Response>[]): Promise<number[]> => {
    const pending = Promise.all(answers.map(async (answer) => (await answer).status));
    let isOver = false;
    void pending.finally(() => (isOver = true)).catch(() => undefined);
    await eventually('all are answered', () => {
      for (const go of working.splice(0)) go();
      return isOver;
    });
    return pending;
  };

  it('are processed a few at a time when they are large; smaller ones do not wait for them', async () => {
    await start(10 * MINUTE_MS);
    const large = [1, 2].map(() => post(bodyOf(LARGE)));
    await atWork(2);
    const waiting = [1, 2].map(() => post(bodyOf(LARGE)));
    const others = [MEGABYTE, SMALL, REQUEST.length + 20].map((bytes) => post(bodyOf(bytes)));
    await atWork(5);
    await othersAreAnswered();
    expect(working).to.have.length(5);
    expect(await finishAll([...large, ...waiting, ...others])).to.deep.equal(Array(7).fill(200));
  });

  it('are processed a few at a time from 64 KB to 1 MB too; small ones are not limited', async () => {
    const medium = [SMALL + 1, MEGABYTE, MEGABYTE].map((bytes) => post(bodyOf(bytes)));
    await atWork(3);
    const waiting = post(bodyOf(SMALL + 1));
    await othersAreAnswered();
    expect((await post(bodyOf(MEGABYTE))).status).to.equal(503);
    expect((await waiting).status).to.equal(503);
    const small = Array.from({ length: 6 }, () => post(bodyOf(SMALL)));
    await atWork(9);
    expect(await finishAll([...medium, ...small])).to.deep.equal(Array(9).fill(200));
  });

  it('are answered 503 when too many wait, or for too long; the caller may still send all', async () => {
    const large = [1, 2].map(() => post(bodyOf(LARGE)));
    await atWork(2);
    // Two may wait.
    const refused = [1, 2, 3].map(() => post(bodyOf(LARGE)));
    for (const answer of await Promise.all(refused)) {
      expect(answer.status).to.equal(503);
      expect(answer.headers.get('Retry-After')).to.equal('1');
      expect(answer.headers.get('X-Error-Code')).to.equal('BUSY');
      expect(await answer.json()).to.deep.equal({
        error: { message: 'Too many large documents at once: send it again later.' },
      });
    }
    expect(app.log.filter(({ code, level }) => code === 'BUSY' && level === 'warn')).to.have.length(3);
    expect(await finishAll(large)).to.deep.equal([200, 200]);
  });

  it('count as large when they are compressed or of unknown length', async () => {
    const large = [1, 2].map(() => post(bodyOf(LARGE)));
    await atWork(2);
    const unknown = await rawCreate(app.url, { 'Transfer-Encoding': 'chunked', Connection: 'close' });
    unknown.socket.write('2\r\n{}\r\n0\r\n\r\n');
    const compressed = post(new Uint8Array(gzipSync('{}')), { 'Content-Encoding': 'gzip' });
    expect((await compressed).status).to.equal(503);
    await unknown.ended();
    expect(unknown.answer()).to.match(/^HTTP\/1\.1 503 /);
    expect(await finishAll(large)).to.deep.equal([200, 200]);
  });

  it('are not read while they wait', async () => {
    await start(10 * MINUTE_MS);
    const large = [1, 2].map(() => post(bodyOf(LARGE)));
    await atWork(2);
    const waiting = await rawCreate(app.url, { 'Content-Length': 50 * MEGABYTE });
    for (let sent = 0; sent < 50; sent++) waiting.socket.write(Buffer.alloc(MEGABYTE, ' '));
    let before = -1;
    const isHeld = () => before === (before = waiting.socket.writableLength);
    await eventually('no more is taken', isHeld, { everyMs: 200 });
    expect(waiting.socket.bytesWritten - waiting.socket.writableLength).to.be.below(16 * MEGABYTE);
    waiting.socket.destroy();
    expect(await finishAll(large)).to.deep.equal([200, 200]);
  });

  it('give their permit back when the caller leaves while they wait or are read', async () => {
    const reading = [];
    for (let count = 0; count < 2; count++) {
      const request = await rawCreate(app.url, { 'Content-Length': 10 * MEGABYTE });
      request.socket.write(Buffer.alloc(MEGABYTE, ' '));
      reading.push(request);
    }
    const waiting = await rawCreate(app.url, { 'Content-Length': 10 * MEGABYTE });
    await othersAreAnswered();
    for (const request of [waiting, ...reading]) request.socket.destroy();
    const large = [1, 2].map(() => post(bodyOf(LARGE)));
    await atWork(2);
    expect(await finishAll(large)).to.deep.equal([200, 200]);
    const gone = () => app.log.filter(({ code }) => code === 'BODY_ABORTED').length;
    await eventually('three are said to have gone', () => gone() === 3);
  });

  it('give their permit back when they fail', async () => {
    const packed = new Uint8Array(gzipSync('[]'));
    for (let count = 0; count < 5; count++) {
      expect((await post(`[${bodyOf(LARGE)}`)).status).to.equal(400);
      expect((await post(packed, { 'Content-Encoding': 'gzip' })).status).to.equal(400);
      expect((await post(packed, { 'Content-Encoding': 'zstd' })).status).to.equal(415);
    }
  });

  it('are refused for their headers before they wait', async () => {
    const large = [1, 2].map(() => post(bodyOf(LARGE)));
    await atWork(2);
    expect((await post(bodyOf(LARGE), { 'Content-Type': 'text/plain' })).status).to.equal(415);

    expect((await post(bodyOf(LARGE), { 'Idempotency-Key': 'a b' })).status).to.equal(400);
    const tooLong = await rawCreate(app.url, { 'Content-Length': 51 * MEGABYTE });
    await eventually('it is refused', () => /^HTTP\/1\.1 413 /.test(tooLong.answer()));
    tooLong.socket.destroy();
    expect(await finishAll(large)).to.deep.equal([200, 200]);
  });

  for (const [what, length, headers, status] of [
    ['for a header', 20 * MEGABYTE, { 'Idempotency-Key': 'a b', Connection: 'close' }, 400],
    ['for its length', 51 * MEGABYTE, {}, 413],
    ['for the length of its head', 20 * MEGABYTE, { 'X-Long': 'x'.repeat(20_000) }, 431],
    ['because its head is no HTTP', 20 * MEGABYTE, { 'X Y': 'z' }, 400],
  ] as const)
    it(`are refused ${what} in a way that a caller can read who sends all of them first`, async () => {
      const head = textOf('POST /create/BILL_OF_LADING', { 'Content-Length': length, ...headers });
      const request = await rawRequest(app.url, head, true);
      const piece = Buffer.alloc(MEGABYTE, ' ');
      for (let sent = 0; sent < length; sent += MEGABYTE)
        await new Promise<void>((resolve, reject) => {
          request.socket.write(piece, (error) => (error ? reject(error) : resolve()));
        });
      request.socket.end();
      await request.ended();
      expect(request.answer()).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
    });

  for (const [encoding, encode] of [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['GZIP', gzipSync],
  ] as const)
    it(`may be encoded with ${encoding}`, async () => {
      const headers = { 'Content-Encoding': encoding };
      const answer = post(new Uint8Array(encode('{"remarks":"Zürich"}')), headers);
      await atWork(1);
      working.splice(0).forEach((go) => go());
      const { signedW3CDocument } = (await (await answer).json()) as { signedW3CDocument: object };
      expect(signedW3CDocument).to.deep.include({ body: { remarks: 'Zürich' } });
      const cut = await post(new Uint8Array(encode(bodyOf(10_000)).subarray(0, 20)), headers);
      expect(cut.status).to.equal(400);
      expect((await post('{}', headers)).status).to.equal(400);
    });

  it('may have 50 MB decoded, and no byte more', async () => {
    const most = bodyOf(50 * MEGABYTE);
    expect(await finishAll([post(most)])).to.deep.equal([200]);
    const undeclared = new Blob([`${most} `]).stream();
    const init = { method: 'POST', headers: json, body: undeclared, duplex: 'half' };
    const tooLarge = await fetch(`${app.url}/create/BILL_OF_LADING`, init as RequestInit);
    expect(tooLarge.status).to.equal(413);
    expect(await tooLarge.json()).to.deep.equal({ error: { message: 'The body is larger than 50 MB.' } });
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(51 * MEGABYTE, ' '), { level: 1 }));
    expect((await post(bomb, { 'Content-Encoding': 'gzip' })).status).to.equal(413);
  });
});

describe('the body middleware', () => {
  const text = REQUEST.replace('{}', '{"name":"ü"}');

  for (const [which, headers] of [
    ['a small body', {}],
    ['a body of unknown length', { 'transfer-encoding': 'chunked' }],
  ] as const)
    it(`keeps the bytes of ${which} in their own memory and hashes them with the document type`, async () => {
      const readOf = async (documentType: string, chunks: string[]) => {
        const req = Object.assign(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), {
          headers,
          complete: true,
          socket: { bytesRead: 0 },
        });
        const ctx = { req, request: { body: undefined } };
        const least = { bytes: 1, withinMs: 60_000 };
        const read = await createBody(systemTime, ctx as never, documentType, least);
        expect(ctx.request.body, 'nothing is kept beside the bytes').to.equal(undefined);
        return read;
      };
      const read = await readOf('BILL_OF_LADING', [text.slice(0, 9), text.slice(9)]);
      expect(Buffer.from(read.body).toString()).to.equal(text);
      expect(read.body.buffer.byteLength).to.equal(read.body.length);
      const expected = createHash('sha256').update(`BILL_OF_LADING\n${text}`).digest('hex');
      expect(read.requestHash).to.equal(expected);
      expect((await readOf('BILL_OF_LADING', [text])).requestHash).to.equal(expected);
      expect((await readOf('OTHER', [text])).requestHash).not.to.equal(expected);
    });
});
