import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { HTTP, type CloudEvent } from 'cloudevents';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { systemTime } from '../../service/base/time';
import { jwksOf, signingKeyOf } from '../../service/base/signing-keys';
import {
  createWebhookClient,
  newWebhookSecret,
  type ContentType,
} from '../../service/delivery/attempt-delivery';
import { stopLater } from '../helpers/resources';
import { startRawReceiver, type RawReceiver } from '../helpers/receiver/raw-receiver';
import { sampleEvent, type Delivery } from '../helpers/receiver/signed-delivery';
import { webhookTo } from '../helpers/receiver/webhook-to';

describe('third-party verifiers of webhooks', () => {
  const event = sampleEvent(1);
  const text = JSON.stringify(event);
  const secret = newWebhookSecret();
  const signingKeys = { key: signingKeyOf(generateKeyPairSync('ed25519').privateKey), next: undefined };
  let receiver: RawReceiver;
  before(async () => {
    receiver = await startRawReceiver();
  });

  /** The event as it arrives over HTTP. */
  async function delivered(
    options: { contentType?: ContentType; standardWebhooks?: { secret: string } },
    now = systemTime.now(),
  ): Promise<Delivery> {
    const target = { ...webhookTo(receiver.url), signingKeys, ...options };
    const client = createWebhookClient(target, { ...systemTime, now: () => now });
    stopLater('a client of webhooks', () => client.close());
    expect(await client.post(text, event.id)).to.include({ status: 204 });
    const delivery = receiver.deliveries.at(-1);
    if (!delivery) throw new Error('nothing arrived');
    return delivery;
  }

  describe('the npm package cloudevents', () => {
    it('reads a delivery of application/cloudevents+json', async () => {
      const { headers, body } = await delivered({ contentType: 'application/cloudevents+json' });
      expect(headers).to.include({ 'content-type': 'application/cloudevents+json' });
      expect(HTTP.isEvent({ headers, body: body.toString() })).to.equal(true);
      const read = HTTP.toEvent({ headers, body: body.toString() }) as CloudEvent<unknown>;
      expect(JSON.parse(JSON.stringify(read))).to.deep.equal(event);
    });

    it('says that there is no event in a delivery of application/json, the default', async () => {
      const { headers, body } = await delivered({});
      expect(headers).to.include({ 'content-type': 'application/json' });
      expect(() => HTTP.toEvent({ headers, body: body.toString() })).to.throw('no cloud event detected');
      // Those of Standard Webhooks come if the subscription asks for them.
      expect(Object.keys(headers).filter((name) => name.startsWith('webhook-'))).to.deep.equal([]);
    });
  });

  describe('the npm package standardwebhooks', () => {
    const webhook = new Webhook(secret);

    it('verifies a delivery with standardWebhooks, although it has v1a beside v1', async () => {
      expect(newWebhookSecret()).not.to.equal(secret);
      expect(secret).to.match(/^whsec_[\w+/]{43}=$/);
      const { headers, body } = await delivered({ standardWebhooks: { secret } });
      expect(headers['webhook-id']).to.equal(event.id);
      expect(headers['webhook-signature']).to.match(/^v1,[\w+/]{43}= v1a,[\w+/]{86}==$/);
      expect(webhook.verify(body.toString(), headers)).to.deep.equal(event);
    });

    it('refuses a delivery that was signed more than five minutes ago, or ahead', async () => {
      for (const [minutes, problem] of [
        [-6, 'too old'],
        [6, 'too new'],
      ] as const) {
        const now = systemTime.now() + minutes * 60_000;
        const { headers, body } = await delivered({ standardWebhooks: { secret } }, now);
        expect(headers['webhook-timestamp']).to.equal(String(Math.floor(now / 1_000)));
        expect(() => webhook.verify(body.toString(), headers)).to.throw(problem);
      }
    });
  });

  it('find the key of v1a in the published JWK Set, by the id of the key', async () => {
    const { headers, body } = await delivered({ standardWebhooks: { secret } });
    const jwk = jwksOf(signingKeys).keys.find(({ kid }) => kid === headers['x-service-key-id']);
    const publicKey = createPublicKey({ key: { ...jwk }, format: 'jwk' });
    const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
    const signature = / v1a,(\S+)$/.exec(headers['webhook-signature'] ?? '')?.[1] ?? '';
    const isGenuine = (bytes: Buffer): boolean =>
      verify(null, bytes, publicKey, Buffer.from(signature, 'base64'));
    expect(isGenuine(Buffer.concat([Buffer.from(content), body]))).to.equal(true);
    expect(isGenuine(Buffer.concat([Buffer.from(content), body, Buffer.from(' ')]))).to.equal(false);
  });
});
