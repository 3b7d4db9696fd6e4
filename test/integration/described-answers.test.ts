import { expect } from 'chai';
import { CORS_HEADERS } from '../../service/http/gate';
import { serve } from '../helpers/http-server';
import { everythingIsAsDescribed } from '../helpers/violations';

describe('answers of the service in tests', () => {
  /** GET /registries of a server that gives this answer. */
  async function fetchFrom(status: number, headers: Record<string, string>, body: unknown): Promise<void> {
    const server = await serve((_, response) =>
      response
        .writeHead(status, { ...CORS_HEADERS, 'Content-Type': 'application/json', ...headers })
        .end(JSON.stringify(body)),
    );
    await (await fetch(`${server.url}/registries`)).text();
    await server.close();
  }

  it('pass if they are described', async () => {
    await fetchFrom(200, {}, { registries: [] });
    expect(everythingIsAsDescribed).not.to.throw();
  });

  const ERROR = { error: { message: 'no' } };
  const cases: [string, number, Record<string, string>, unknown, RegExp][] = [
    ['a member', 200, {}, { registries: [], more: 1 }, /must NOT have additional properties/],
    ['no member', 200, {}, {}, /must have required property 'registries'/],
    ['a status', 418, { 'X-Error-Code': 'NOT_FOUND' }, ERROR, /the status is not described/],
    ['a code', 401, { 'X-Error-Code': 'NOT_FOUND' }, ERROR, /the code NOT_FOUND is not described/],
    ['no code', 401, {}, ERROR, /the code null is not described/],
    ['a media type', 200, { 'Content-Type': 'text/plain' }, '', /the media type text\/plain is not/],
  ];
  for (const [what, status, headers, body, problem] of cases)
    it(`fail a test if ${what} is not described`, async () => {
      await fetchFrom(status, headers, body);
      expect(everythingIsAsDescribed).to.throw(problem);
    });
});
