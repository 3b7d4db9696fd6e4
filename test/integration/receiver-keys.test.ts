import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { publishedKeys, reasonOf, type FindKey } from '../../receiver/verify';
import { publicJwkOf, type PublicJwk } from '../../service/base/signing-keys';
import { serve, type TestServer } from '../helpers/http-server';

const newJwk = (): PublicJwk => publicJwkOf(generateKeyPairSync('ed25519').privateKey);

describe('published keys of the service in the receiver', () => {
  const [first, second] = [newJwk(), newJwk()];
  let server: TestServer;
  let asked: number;
  let answer: { status: number; body: string; headers?: Record<string, string> };
  let now: number;
  let findKey: FindKey;

  const publish = (...published: unknown[]): void => {
    answer = { status: 200, body: JSON.stringify({ keys: published }) };
  };
  /** The `x` of the key found, undefined if there is none. */
  const found = async (keyId: string | string[] | undefined): Promise<string | undefined> =>
    (await findKey(keyId))?.export({ format: 'jwk' }).x;
  const failureOf = async (keyId: string): Promise<string> =>
    findKey(keyId).then(
      () => 'it was found',
      (error: Error) => error.message,
    );

  before(async () => {
    server = await serve((_request, response) => {
      asked++;
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
  });

  beforeEach(() => {
    [asked, now] = [0, 1_000];
    findKey = publishedKeys(`${server.url}/.well-known/jwks.json`, () => now);
    publish(first);
  });

  it('are fetched once, for the first delivery, also if several come at the same time', async () => {
    expect(await Promise.all([found(first.kid), found(first.kid)])).to.deep.equal([first.x, first.x]);
    expect(await found(first.kid)).to.equal(first.x);
    expect(asked).to.equal(1);
  });

  it('are fetched again for an unknown key id, but not within ten seconds of the last time', async () => {
    await found(first.kid);
    publish(first, second);
    now += 9_999;
    expect(await found(second.kid)).to.equal(undefined);
    expect(asked).to.equal(1);
    now += 1;
    expect(await found(second.kid)).to.equal(second.x);
    expect(await found(first.kid)).to.equal(first.x);
    expect(asked).to.equal(2);
  });

  it('are not fetched for a delivery without a key id, or with several', async () => {
    expect(await found(undefined)).to.equal(undefined);
    expect(await found([first.kid, first.kid])).to.equal(undefined);
    expect(asked).to.equal(0);
  });

  it('are fetched again after ten minutes, so that a withdrawn key is refused', async () => {
    await found(first.kid);
    publish(second);
    now += 10 * 60_000 - 1;
    expect(await found(first.kid)).to.equal(first.x);
    now += 1;
    expect(await found(first.kid)).to.equal(undefined);
    expect(asked).to.equal(2);
  });

  it('stay in use if they cannot be fetched again, and are tried again after ten seconds', async () => {
    await found(first.kid);
    answer = { status: 503, body: 'later' };
    now += 10 * 60_000;
    expect(await found(first.kid)).to.equal(first.x);
    expect(await failureOf(second.kid)).to.match(/^The keys at .* cannot be fetched: the answer is 503$/);
    expect(asked).to.equal(2);
    publish(second);
    now += 10_000;
    expect(await found(first.kid)).to.equal(undefined);
    expect(await found(second.kid)).to.equal(second.x);
  });

  it('are only those for Ed25519 signatures with an id; others and malformed ones are skipped', async () => {
    const ofOtherCurve = { kty: 'EC', crv: 'P-256', kid: 'other' };
    publish(null, ofOtherCurve, { ...first, x: 'too short' }, { ...first, kid: undefined }, second);
    expect(await found('other')).to.equal(undefined);
    expect(await found(first.kid)).to.equal(undefined);
    expect(await found(second.kid)).to.equal(second.x);
  });

  it('are told of with the address, also as the reason why events are not fetched', async () => {
    answer = { status: 404, body: '' };
    const failure: unknown = await findKey(first.kid).catch((error: unknown) => error);
    expect(reasonOf(failure)).to.match(/^The keys at .*jwks\.json cannot be fetched: the answer is 404$/);
    expect(reasonOf(new TypeError('fetch failed', { cause: new Error('ended') }))).to.equal('ended');
  });

  for (const [what, wrong, reason] of [
    ['an error', { status: 404, body: '{"keys":[]}' }, /the answer is 404/],
    ['no JSON', { status: 200, body: '<html>' }, /JSON/],
    ['no JWK Set', { status: 200, body: '{"keys":{}}' }, /is not a JWK Set/],
    ['null', { status: 200, body: 'null' }, /is not a JWK Set/],
    ['a large answer', { status: 200, body: ' '.repeat(65_537) }, /is larger than 65536 bytes/],
    ['a redirect', { status: 302, body: '', headers: { Location: '/jwks.json' } }, /redirect/],
  ] as const)
    it(`are missing, with the reason, if the answer is ${what}`, async () => {
      answer = wrong;
      expect(await failureOf(first.kid))
        .to.match(/^The keys at http.* cannot be fetched: /)
        .and.match(reason);
      expect(asked).to.equal(1);
    });
});
