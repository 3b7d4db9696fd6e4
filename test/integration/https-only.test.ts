import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { fetchJson } from '../../service/did/fetch-json';
import { track } from '../helpers/resources';

describe('fetching published documents', () => {
  let server: Server;
  let untrack: () => void;
  let port: number;

  before(async () => {
    server = createServer((request, response) => {
      if (request.url === '/away') response.writeHead(302, { Location: 'http://elsewhere.example/' }).end();
      else response.end(request.url === '/large' ? `"${'x'.repeat(2_000_000)}"` : '{"a": 1}');
    });
    untrack = track('server of JSON');
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ({ port } = server.address() as AddressInfo);
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    untrack();
  });

  const problem = async (url: string): Promise<string> => {
    const answer = await fetchJson(new URL(url));
    return answer.kind === 'json' ? 'json' : `${answer.kind}: ${answer.problem}`;
  };

  it('uses HTTPS, and plain HTTP for this machine alone', async () => {
    for (const url of [
      'http://issuer.example/c.json',
      'file:///etc/passwd',
      'data:application/json,{}',
      'ftp://a.example/',
    ])
      expect(await problem(url), url).to.equal('refused: is not https://');
    expect(await problem(`https://localhost:${port}/`)).to.equal('json');
    expect(await problem(`http://127.0.0.1:${port}/`)).to.equal('json');
  });

  it('refuses redirects to plain HTTP elsewhere, and answers that are too large', async () => {
    expect(await problem(`http://localhost:${port}/away`)).to.contain('refused: redirects to http://');
    expect(await problem(`http://localhost:${port}/large`)).to.contain('refused: is larger than');
  });
});
