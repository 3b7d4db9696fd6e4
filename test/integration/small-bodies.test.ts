import { expect } from 'chai';
import { ConfigurationError } from '../../service/base/errors';
import type { Issuing } from '../../service/issuance/issue-document';
import { eventually } from '../helpers/eventually';
import {
  accepting,
  mintedDocument,
  REQUEST,
  startHttpApp,
  type RunningHttpApp,
} from '../helpers/processes/http-app';
import { rawCreate } from '../helpers/processes/raw-request';

const SMALL = 64 * 1024;

/** A request with these bytes as the text of a name in its subject. */
function requestWith(...bytes: number[]): Buffer {
  const [before = '', after = ''] = REQUEST.replace('{}', '{"name":"|"}').split('|');
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
}

describe('a body of POST /create of up to 64 KB', () => {
  let app: RunningHttpApp;
  let issuing: Issuing;
  /** The bodies that reached the use case. */
  let issued: string[];

  before(async () => {
    app = await startHttpApp({
      issuing: {
        acceptedType: (type) => issuing.acceptedType(type),
        issue: (request) => issuing.issue(request),
      },
    });
  });

  beforeEach(() => {
    issued = [];
    issuing = accepting(async ({ body }) => {
      issued.push(Buffer.from(body).toString());
      return mintedDocument();
    });
  });

  const post = (body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${app.url}/create/BILL_OF_LADING`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : new Uint8Array(body),
    });

  async function refused(answer: Promise<Response>, status: number, code: string, message: RegExp) {
    const response = await answer;
    const { error } = (await response.json()) as { error: { message: string } };
    expect([response.status, response.headers.get('X-Error-Code')]).to.deep.equal([status, code]);
    expect(error.message).to.match(message);
    expect(issued).to.deep.equal([]);
  }

  it('reaches the use case unchanged, even a replacement character and a byte order mark', async () => {
    for (const body of [requestWith(0xef, 0xbf, 0xbd).toString(), `\ufeff${REQUEST}`, ` ${REQUEST}\n`]) {
      issued = [];
      expect((await post(body)).status).to.equal(200);
      expect(Buffer.from(issued[0] ?? '')).to.deep.equal(Buffer.from(body));
    }
  });

  // prepare-document.test.ts has the others.
  for (const [body, problem] of [
    ['', /: it is empty\.$/],
    ['{"owner":"', /: line 1, column 10: this string is not closed on its line\.$/],
    ['[1, 2', /: line 1, column 6: /],
    ['"{}"', /: it is a string\.$/],
    ['{"a":{"__proto__":{}}}', /: a key is "__proto__"\.$/],
    [Buffer.from('{}', 'utf16le'), /: it is in UTF-16; /],
    [requestWith(0xff), /: line 1, column \d+: it is not text in UTF-8\.$/],
  ] as const)
    it(`is refused when it is ${JSON.stringify(body.toString())}, and told why`, () =>
      refused(post(body), 400, 'BODY_NOT_JSON', problem));

  it('may have any JSON content type and the encoding identity, in any case', async () => {
    for (const type of ['application/ld+json', 'APPLICATION/JSON;charset=utf-8', 'application/vnd.acme+json'])
      for (const encoding of ['identity', 'IDENTITY'])
        expect((await post(REQUEST, { 'Content-Type': type, 'Content-Encoding': encoding })).status).to.equal(
          200,
        );
    issued = [];
    const form = ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'];
    for (const type of ['text/plain', 'application/jsonx', ...form])
      await refused(post(REQUEST, { 'Content-Type': type }), 415, 'CONTENT_TYPE_WRONG', /application\/json/);
  });

  it('is refused at once when its shape is wrong; larger ones are left to the thread', async () => {
    const ofSize = (bytes: number): string => `{"owner":"${'x'.repeat(bytes - '{"owner":""}'.length)}"}`;
    const problem = /^\/credentialSubject must be an object/;
    await refused(post(ofSize(SMALL)), 400, 'REQUEST_FIELD_INVALID', problem);
    expect((await post(ofSize(SMALL + 1))).status).to.equal(200);
    expect(issued).to.have.length(1);
  });

  it('is refused with more values than a document may have, and read when it is nested deeply', async () => {
    const subject = (inside: string): string => REQUEST.replace('{}', `{"name":${inside}}`);
    const many = post(subject(`[${'[],'.repeat(20_000)}1]`));
    await refused(many, 400, 'BODY_TOO_COMPLEX', /more than 20000 values/);
    const deep = subject(`${'['.repeat(19_000)}${']'.repeat(19_000)}`);
    expect((await post(deep)).status).to.equal(200);
  });

  it('is refused with a name that occurs twice, unless it may be one that was accepted before', async () => {
    for (const [body, pointer] of [
      [REQUEST.replace('"owner":', '"owner":"0x1","owner":'), '/owner'],
      [REQUEST.replace('{}', '{"a":[{"b":1,"c":2,"\\u0062":3}]}'), '/credentialSubject/a/0/b'],
    ] as const) {
      issued = [];
      await refused(post(body), 400, 'BODY_AMBIGUOUS', new RegExp(`^${pointer} occurs twice in its object`));
      // The journal has the answer of a stored key, and the thread refuses the body of another one.
      expect((await post(body, { 'Idempotency-Key': 'stored' })).status).to.equal(200);
      expect(issued).to.deep.equal([body]);
    }
  });

  it('is given up when its caller leaves before all of it has arrived', async () => {
    const { socket } = await rawCreate(app.url, { 'Content-Length': REQUEST.length });
    socket.write(REQUEST.slice(0, -1));
    socket.end();
    const line = await eventually('it is said', () => app.log.find(({ code }) => code === 'BODY_ABORTED'));
    expect(line).to.include({ level: 'warn', status: 400 });
    expect(issued).to.deep.equal([]);
  });

  it('is not read, nor are its headers, when no document of its type is issued', async () => {
    issuing.acceptedType = () => {
      throw new ConfigurationError('NOT_CONFIGURED', 'Nothing is configured.');
    };
    const headers = { 'Content-Type': 'text/plain', 'Idempotency-Key': 'a b' };
    const request = await rawCreate(app.url, { 'Content-Length': 60 * 1024 * 1024, ...headers });
    await eventually('it is answered', () => request.answer() !== '');
    expect(request.answer())
      .to.match(/^HTTP\/1\.1 500 /)
      .and.contain('X-Error-Code: NOT_CONFIGURED');
    request.socket.destroy();
  });
});
