import { createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { jwksOf, publicJwkOf, signingKeyAt, signingKeyOf } from '../../service/base/signing-keys';
import { createWebhookClient } from '../../service/delivery/attempt-delivery';
import { verifySignature } from '../../receiver/verify';
import { startRawReceiver } from '../helpers/receiver/raw-receiver';
import { stopLater } from '../helpers/resources';
import { webhookTo } from '../helpers/receiver/webhook-to';

/** The key pair of RFC 8037, appendix A.1, and its thumbprint of appendix A.3. */
const RFC_8037 = {
  kty: 'OKP',
  crv: 'Ed25519',
  d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
};
const THUMBPRINT = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k';

const newKey = () => signingKeyOf(generateKeyPairSync('ed25519').privateKey);

describe('public JWK of a signing key', () => {
  it('has the thumbprint of RFC 8037, appendix A.3, as its kid, and no private member', () => {
    const privateKey = createPrivateKey({ key: RFC_8037, format: 'jwk' });
    expect(publicJwkOf(privateKey)).to.deep.equal({
      kty: 'OKP',
      crv: 'Ed25519',
      x: RFC_8037.x,
      kid: THUMBPRINT,
      use: 'sig',
      alg: 'EdDSA',
    });
  });
});

describe('change of the signing key', () => {
  const [key, next] = [newKey(), newKey()];
  const from = Date.UTC(2027, 0, 31, 12);

  it('is made at the switch time: the first key signs until then, the next one from then on', () => {
    const keys = { key, next: { key: next, from } };
    expect(signingKeyAt(keys, 0)).to.equal(key);
    expect(signingKeyAt(keys, from - 1)).to.equal(key);
    expect(signingKeyAt(keys, from)).to.equal(next);
    expect(signingKeyAt(keys, from + 1e12)).to.equal(next);
    expect(signingKeyAt({ key, next: undefined }, 1e15)).to.equal(key);
  });

  it('is published with its time in both keys; a key without a change has no times', () => {
    expect(jwksOf({ key, next: undefined })).to.deep.equal({ keys: [publicJwkOf(key.privateKey)] });
    expect(jwksOf({ key, next: { key: next, from } })).to.deep.equal({
      keys: [
        { ...publicJwkOf(key.privateKey), exp: from / 1_000 },
        { ...publicJwkOf(next.privateKey), nbf: from / 1_000 },
      ],
    });
  });

  it('is decided for each delivery when it is sent, and X-Service-Key-Id names its key', async () => {
    const receiver = await startRawReceiver();
    let now = from - 1;
    const signingKeys = { key, next: { key: next, from } };
    const target = { ...webhookTo(receiver.url), signingKeys };
    const client = createWebhookClient(target, { ...systemTime, now: () => now });
    stopLater('client', () => client.close());
    await client.post('{"event":1}', randomUUID());
    now = from;
    await client.post('{"event":1}', randomUUID());
    expect(receiver.deliveries.map(({ headers }) => headers['x-service-key-id'])).to.deep.equal([
      key.id,
      next.id,
    ]);
    for (const [at, { privateKey }] of [key, next].entries()) {
      const { headers = {}, body = Buffer.alloc(0) } = receiver.deliveries[at] ?? {};
      expect(body.toString()).to.equal('{"event":1}');
      expect(verifySignature(headers['x-service-signature'], body, createPublicKey(privateKey))).to.equal(
        true,
      );
    }
  });
});
