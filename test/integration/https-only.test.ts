import { expect } from 'chai';
import { fetchJson } from '../../service/did/fetch-json';
import { serve, type TestServer } from '../helpers/http-server';

describe('fetching published documents', () => {
  let server: TestServer;

  before(async () => {
    server = await serve((request, response) => {
      if (request.url === '/away') response.writeHead(302, { Location: 'http://elsewhere.example/' }).end();
      else response.end(request.url === '/large' ? `"${'x'.repeat(2_000_000)}"` : '{"a": 1}');
    });
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
    expect(await problem(`https://localhost:${server.port}/`)).to.equal('json');
    expect(await problem(`http://127.0.0.1:${server.port}/`)).to.equal('json');
  });

  it('refuses redirects to plain HTTP elsewhere, and answers that are too large', async () => {
    expect(await problem(`http://localhost:${server.port}/away`)).to.contain('refused: redirects to http://');
    expect(await problem(`http://localhost:${server.port}/large`)).to.contain('refused: is larger than');
  });
});
