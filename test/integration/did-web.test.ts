import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { freePort } from '../../devnet/place';
import { systemTime } from '../../service/base/time';
import { createFetching, type FetchJson } from '../../service/did/fetch-json';
import { didWebUrl, resolveDidWeb } from '../../service/did/resolve-did-web';
import { serve, type TestServer } from '../helpers/http-server';

describe('did:web', () => {
  let server: TestServer;
  let port: number;
  let requests: string[];
  let answer: RequestListener;

  before(async () => {
    server = await serve((request, response) => {
      requests.push(request.url ?? '');
      answer(request, response);
    });
    ({ port } = server);
  });
  beforeEach(() => {
    requests = [];
  });

  const getJson: FetchJson = (one) => createFetching(systemTime)(one);
  const did = (): string => `did:web:127.0.0.1%3A${port}`;
  const url = (path = '/document.json', host = '127.0.0.1'): URL => new URL(`https://${host}:${port}${path}`);
  const answering = (body: string, status = 200): void => {
    answer = (_request, response) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };

  describe('identifier', () => {
    const documents = {
      'did:web:trade.example.com': 'https://trade.example.com/.well-known/did.json',
      'did:web:localhost%3A3000': 'https://localhost:3000/.well-known/did.json',
      'did:web:a.example:carriers:blue%20line': 'https://a.example/carriers/blue%20line/did.json',
    };
    for (const [identifier, expected] of Object.entries(documents))
      it(`${identifier} has its document at ${expected}`, () =>
        expect(didWebUrl(identifier)?.href).to.equal(expected));

    for (const identifier of [
      'did:key:zDnae',
      'did:web:',
      'did:web:a::b',
      'did:web:user%40trade.example.com',
      'did:web:trade.example.com%2Fpath',
      'did:web:trade.example.com%3Fquery',
      'did:web:%zz',
      'did:web:trade.example.com:..%2F..',
      'did:web:trade.example.com:..:secret',
      'did:web:trade example.com',
      'did:web:tr\u0430de.example.com',
      'did:web:trade.example.com:\u00fc',
      'https://trade.example.com',
    ])
      it(`${identifier} is not a valid did:web identifier`, () =>
        expect(didWebUrl(identifier)).to.equal(undefined));
  });

  it('fetches no more when the time that several documents share is over', async () => {
    answer = (request, response) => {
      if (request.url === '/document.json') response.end('{}');
    };
    const fetchOne = createFetching(systemTime, 500);
    for (const path of ['/slow', '/document.json']) {
      const late = await fetchOne(url(path));
      expect(late).to.include({ kind: 'unavailable' });
      expect(late).to.have.property('problem').that.contains('within the 0.5 s');
    }
    expect(requests).not.to.include('/document.json');
  });

  it('resolves over plain HTTP on this machine, and keeps unknown fields', async () => {
    const document = { id: did(), assertionMethod: [`${did()}#keys-1`], extra: true };
    answering(JSON.stringify(document));
    const resolution = await resolveDidWeb(did(), getJson);
    expect(resolution).to.deep.include({
      kind: 'resolved',
      document,
      url: `${server.url}/.well-known/did.json`,
    });
  });

  it('refuses a document that is invalid, deactivated or of another DID', async () => {
    for (const [document, problem] of [
      [{ id: 'did:web:other.example' }, `is the DID document of did:web:other.example, not of ${did()}`],
      [{ id: 5 }, ' /id '],
      [{ id: did(), deactivated: true }, 'says that the DID is deactivated'],
    ] as const) {
      answering(JSON.stringify(document));
      const resolution = await resolveDidWeb(did(), getJson);
      expect(resolution.kind).to.equal('refused');
      expect(resolution).to.have.property('problem').that.contains(problem);
    }
  });

  it('drops unusable verification methods, and accepts a single value in place of a list', async () => {
    const method = { id: `${did()}#keys-1`, type: 'Multikey', controller: did() };
    const verificationMethod = [{ id: 1 }, null, { ...method, type: ['A', 'B'] }, method];
    answering(JSON.stringify({ id: did(), verificationMethod, assertionMethod: method.id }));
    const resolution = await resolveDidWeb(did(), getJson);
    expect(resolution).to.have.nested.property('document.verificationMethod').which.deep.equals([method]);
    expect(resolution).to.have.nested.property('document.assertionMethod').which.deep.equals([method.id]);
  });

  for (const status of [404, 410, 500, 503, 429, 408, 403]) {
    const kind = status === 404 || status === 410 ? 'refused' : 'unavailable';
    it(`reports status ${status} as ${kind}`, async () => {
      answering('{}', status);
      const fetched = await getJson(url());
      expect(fetched.kind).to.equal(kind);
      const only = kind === 'refused' ? '^' : '; over plain HTTP it ';
      expect(fetched)
        .to.have.property('problem')
        .that.matches(new RegExp(`${only}answers ${status}$`));
    });
  }

  it('reports a host as unavailable that does not answer, or not in time', async () => {
    answer = (_request, response) => response.flushHeaders();
    const fetched = await createFetching(systemTime, 200)(url());
    expect(fetched.kind).to.equal('unavailable');
    expect(fetched).to.have.property('problem').which.includes('was not fetched within the 0.2 s');
    const closed = await getJson(new URL(`https://127.0.0.1:${await freePort(0)}/did.json`));
    expect(closed.kind).to.equal('unavailable');
    expect(closed).to.have.property('problem').which.includes('ECONNREFUSED');
  });

  it('reads JSON with or without a byte order mark, and refuses all else, and more than 1 MiB', async () => {
    const nested = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);
    const depth = { kind: 'refused', problem: 'is nested deeper than 100 levels' };
    for (const [body, outcome] of [
      ['\ufeff{"a": 1}', { kind: 'json', json: { a: 1 } }],
      ['<html>', { kind: 'refused', problem: 'is not JSON: line 1, column 1: this is not a JSON value' }],
      [nested(100), { kind: 'json' }],
      [nested(101), depth],
      [`{"@context":${'{"a":'.repeat(170_000)}`, depth],
      ['{"a":1,"b":{"c":1,"c":2}}', { kind: 'refused', problem: 'has /b/c twice in its object' }],
      [JSON.stringify('x'.repeat(1_048_576)), { kind: 'refused', problem: 'is larger than 1048576 bytes' }],
    ] as const) {
      answering(body);
      expect(await getJson(url())).to.deep.include(outcome);
    }
  });

  it('follows redirects, at most 3, and none to plain HTTP elsewhere', async () => {
    const next: Record<string, string> = {
      '/moved': '/here',
      '/round': '/round',
      '/away': 'http://x.example/',
    };
    answer = (request, response) => {
      const location = next[request.url ?? ''];
      if (location === undefined) response.writeHead(200).end('{"found":true}');
      else response.writeHead(302, { location }).end();
    };
    const moved = { json: { found: true }, url: `http://127.0.0.1:${port}/here` };
    expect(await getJson(url('/moved'))).to.deep.include(moved);
    for (const [path, problem] of [
      ['/round', 'redirects more than 3 times'],
      ['/away', 'redirects to http://x.example, not to https://'],
    ] as const)
      expect(await getJson(url(path))).to.include({ kind: 'refused', problem });
  });

  it('uses HTTPS, and plain HTTP for this machine alone', async () => {
    answering('{}');
    for (const other of ['http://issuer.example/c.json', 'file:///etc/passwd', 'data:application/json,{}'])
      expect(await getJson(new URL(other))).to.include({ kind: 'refused', problem: 'is not https://' });
    // The same server under a name that does not count as this machine's.
    expect((await getJson(url('/document.json', '[::ffff:127.0.0.1]'))).kind).to.equal('unavailable');
    expect(requests).to.deep.equal([]);
    for (const own of [url('/', 'localhost'), new URL(server.url)])
      expect((await getJson(own)).kind).to.equal('json');
  });
});
