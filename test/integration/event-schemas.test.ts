import { Ajv2020 } from 'ajv/dist/2020';
import { expect } from 'chai';
import { request } from 'undici';
import { EVENT_SCHEMAS } from '../../client/events';
import { startHttpApp, type RunningHttpApp } from '../helpers/processes/http-app';
import { sampleEvent } from '../helpers/receiver/signed-delivery';

const TYPE = 'com.service.etr.holder_transfer';

describe('GET /schemas/', () => {
  let service: RunningHttpApp;
  const get = (path: string): Promise<Response> => fetch(service.url + path);

  before(async () => {
    service = await startHttpApp({ domain: 'trade.example' });
  });

  it('answers the URLs of the schemas of all event types', async () => {
    const answer = await get('/schemas/');
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('Content-Type')).to.match(/^application\/json/);
    expect(await answer.json()).to.deep.equal(
      Object.keys(EVENT_SCHEMAS).map((type) => `https://trade.example/schemas/${type}.json`),
    );
  });

  it('answers each schema with its URL as $id, which a validator for draft 2020-12 compiles', async () => {
    const urls = (await (await get('/schemas/')).json()) as string[];
    const ajv = new Ajv2020({ strict: true, validateFormats: false });
    for (const url of urls) {
      const answer = await get(new URL(url).pathname);
      expect(answer.status, url).to.equal(200);
      expect(answer.headers.get('Content-Type')).to.match(/^application\/schema\+json/);
      const schema = (await answer.json()) as { $id: string; title: string };
      expect(schema).to.deep.include({ ...EVENT_SCHEMAS[schema.title as typeof TYPE], $id: url });
      ajv.addSchema(schema);
    }
    expect(urls.filter((url) => ajv.validate(url, sampleEvent(1)))).to.deep.equal([
      `https://trade.example/schemas/${TYPE}.json`,
    ]);
  });

  it('may be cached for an hour, and answers 304 while it is unchanged', async () => {
    for (const path of ['/schemas/', `/schemas/${TYPE}.json`]) {
      const first = await get(path);
      expect(first.headers.get('Cache-Control')).to.equal('public, max-age=3600');
      // Not with fetch(), which adds `Cache-Control: no-cache` to such a request.
      const headers = { 'If-None-Match': first.headers.get('ETag') ?? '' };
      const { statusCode } = await request(service.url + path, { headers });
      expect(statusCode, path).to.equal(304);
    }
  });

  it('answers 404 for an event type that does not exist', async () => {
    for (const name of ['com.service.etr.split.json', TYPE, 'constructor.json'])
      expect((await get(`/schemas/${name}`)).status, name).to.equal(404);
  });

  it('names paths instead of URLs if DOMAIN is not set', async () => {
    await using local = await startHttpApp({});
    const paths = (await (await fetch(`${local.url}/schemas`)).json()) as string[];
    expect(paths).to.include(`/schemas/${TYPE}.json`);
    const schema = await (await fetch(`${local.url}/schemas/${TYPE}.json`)).json();
    expect(schema).to.have.property('$id', `/schemas/${TYPE}.json`);
  });
});
