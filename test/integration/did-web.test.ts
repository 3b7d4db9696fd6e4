import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { didWebUrl } from '../../service/did/resolve-did-web';
import { fetchJson } from '../../service/did/fetch-json';
import { resolveDidWeb } from '../../service/did/resolve-did-web';
import { track } from '../helpers/resources';

describe('did:web', () => {
  let server: Server;
  let port: number;
  let requests: string[];
  let answer: RequestListener;
  let untrack: () => void;

  before(async () => {
    untrack = track('web server of the did:web tests');
    server = createServer((request, response) => {
      requests.push(request.url ?? '');
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ({ port } = server.address() as AddressInfo);
  });
  beforeEach(() => {
    requests = [];
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    untrack();
  });

  const did = (): string => `did:web:127.0.0.1%3A${port}`;
  const url = (path = '/document.json', host = '127.0.0.1'): URL => new URL(`https://${host}:${port}${path}`);
  const answering = (body: string, status = 200, headers: Record<string, string> = {}): void => {
    answer = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(body);
    };
  };

  const closedUrl = async (): Promise<URL> => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port: freePort } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    return new URL(`https://127.0.0.1:${freePort}/did.json`);
  };

  describe('identifier', () => {
    const documents = {
      'did:web:trade.example.com': 'https://trade.example.com/.well-known/did.json',
      'did:web:localhost%3A3000': 'https://localhost:3000/.well-known/did.json',
      'did:web:trade.example.com:carriers:blue%20line':
        'https://trade.example.com/carriers/blue%20line/did.json',
    };
    for (const [identifier, expected] of Object.entries(documents)) {
      it(`${identifier} has its document at ${expected}`, () => {
        expect(didWebUrl(identifier)?.href).to.equal(expected);
      });
    }

    const others = [
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
    ];
    for (const identifier of others) {
      it(`${identifier} is not a valid did:web identifier`, () => {
        expect(didWebUrl(identifier)).to.equal(undefined);
      });
    }
  });

  it('resolves over plain HTTP on this machine, and keeps unknown fields', async () => {
    answering(JSON.stringify({ id: did(), assertionMethod: [`${did()}#keys-1`], extra: true }));
    const resolution = await resolveDidWeb(did());
    if (resolution.kind !== 'resolved') throw new Error(resolution.problem);
    expect(resolution.url).to.equal(`http://127.0.0.1:${port}/.well-known/did.json`);
    expect(resolution.document).to.deep.equal({
      id: did(),
      assertionMethod: [`${did()}#keys-1`],
      extra: true,
    });
  });

  it('does not resolve to the document of another DID', async () => {
    answering(JSON.stringify({ id: 'did:web:other.example' }));
    expect(await resolveDidWeb(did())).to.deep.include({
      kind: 'refused',
      problem: `is the DID document of did:web:other.example, not of ${did()}`,
    });
  });

  it('names the field that makes a DID document invalid', async () => {
    answering(JSON.stringify({ id: 5 }));
    const resolution = await resolveDidWeb(did());
    expect(resolution.kind).to.equal('refused');
    expect(resolution)
      .to.have.property('problem')
      .which.matches(/ \/id /);
  });

  it('drops unusable verification methods, and accepts a single value in place of a list', async () => {
    const method = { id: `${did()}#keys-1`, type: 'Multikey', controller: did() };
    const verificationMethod = [{ id: 1 }, null, { ...method, type: ['A', 'B'] }, method];
    answering(JSON.stringify({ id: did(), verificationMethod, assertionMethod: method.id }));
    const resolution = await resolveDidWeb(did());
    expect(resolution).to.have.nested.property('document.verificationMethod').which.deep.equals([method]);
    expect(resolution).to.have.nested.property('document.assertionMethod').which.deep.equals([method.id]);
  });

  it('does not resolve a DID whose document says that it is deactivated', async () => {
    answering(JSON.stringify({ id: did(), deactivated: true }));
    expect(await resolveDidWeb(did())).to.include({
      kind: 'refused',
      problem: 'says that the DID is deactivated',
    });
  });

  for (const status of [404, 410]) {
    it(`refuses an answer with status ${status}`, async () => {
      answering('{}', status);
      expect(await fetchJson(url())).to.deep.include({ kind: 'refused', problem: `answers ${status}` });
    });
  }

  for (const status of [500, 503, 429, 408, 403]) {
    it(`reports status ${status} as unavailable`, async () => {
      answering('{}', status);
      const fetched = await fetchJson(url());
      expect(fetched.kind).to.equal('unavailable');
      expect(fetched).to.have.property('problem').which.includes(`over plain HTTP it answers ${status}`);
    });
  }

  it('reports a host as unavailable that does not answer, or not in time', async () => {
    answer = (_request, response) => response.flushHeaders();
    const fetched = await fetchJson(url(), 200);
    expect(fetched.kind).to.equal('unavailable');
    expect(fetched).to.have.property('problem').which.includes('does not answer within 0.2 s');
    const closed = await fetchJson(await closedUrl());
    expect(closed.kind).to.equal('unavailable');
    expect(closed).to.have.property('problem').which.includes('ECONNREFUSED');
  });

  it('refuses an answer that is not JSON, or larger than 1 MiB', async () => {
    answering('<html>');
    expect(await fetchJson(url())).to.deep.include({ kind: 'refused', problem: 'is not JSON' });
    answering(JSON.stringify('x'.repeat(1_048_576)));
    expect(await fetchJson(url())).to.deep.include({
      kind: 'refused',
      problem: 'is larger than 1048576 bytes',
    });
  });

  it('reads JSON that begins with a byte order mark', async () => {
    answering('\ufeff{"a": 1}');
    expect(await fetchJson(url())).to.deep.include({ kind: 'json', json: { a: 1 } });
  });

  it('follows redirects, at most 3', async () => {
    answer = (request, response) => {
      if (request.url === '/here') return void response.writeHead(200).end('{"found":true}');
      response.writeHead(302, { location: request.url === '/round' ? '/round' : '/here' }).end();
    };
    expect(await fetchJson(url('/moved'))).to.deep.include({
      json: { found: true },
      url: `http://127.0.0.1:${port}/here`,
    });
    expect(await fetchJson(url('/round'))).to.deep.include({
      kind: 'refused',
      problem: 'redirects more than 3 times',
    });
  });

  it('follows no redirect to plain HTTP elsewhere', async () => {
    answering('', 302, { location: 'http://trade.example.com/did.json' });
    expect(await fetchJson(url())).to.deep.include({
      kind: 'refused',
      problem: 'redirects to http://trade.example.com, not to https://',
    });
  });

  it('uses plain HTTP for this machine alone', async () => {
    answering('{}');
    // The same server under a name that does not count as this machine's.
    expect((await fetchJson(url('/document.json', '[::ffff:127.0.0.1]'))).kind).to.equal('unavailable');
    expect(requests).to.deep.equal([]);
  });
});
