import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { jwksOf, signingKeyOf } from '../../service/base/signing-keys';
import { startHttpApp } from '../helpers/processes/http-app';

describe('GET /.well-known/jwks.json', () => {
  const newKey = () => signingKeyOf(generateKeyPairSync('ed25519').privateKey);

  it('answers the public keys as a JWK Set cacheable for a minute, without private members', async () => {
    const signingKeys = { key: newKey(), next: { key: newKey(), from: Date.UTC(2027, 0) } };
    await using service = await startHttpApp({ signingKeys });
    const answer = await fetch(`${service.url}/.well-known/jwks.json`);
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('Content-Type')).to.match(/^application\/jwk-set\+json/);
    expect(answer.headers.get('Cache-Control')).to.equal('public, max-age=60');
    const text = await answer.text();
    expect(JSON.parse(text)).to.deep.equal(jwksOf(signingKeys));
    for (const { privateKey } of [signingKeys.key, signingKeys.next.key])
      expect(text).not.to.contain(privateKey.export({ format: 'jwk' }).d);
  });

  it('answers 404 and names the setting if there is no signing key', async () => {
    await using service = await startHttpApp({ signingKeys: undefined });
    const answer = await fetch(`${service.url}/.well-known/jwks.json`);
    expect(answer.status).to.equal(404);
    expect(answer.headers.get('X-Error-Code')).to.equal('SIGNING_KEY_MISSING');
    expect(await answer.json()).to.deep.equal({
      error: { message: 'This service signs no webhooks: SIGNING_PRIVATE_KEY is not configured.' },
    });
  });
});
