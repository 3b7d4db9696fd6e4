import { expect } from 'chai';
import { verifySignature } from '../../receiver/verify';
import { newSender, sampleEvent } from '../helpers/receiver/signed-delivery';

describe('signature check of the receiver', () => {
  const sender = newSender();
  const { body, headers } = sender.signed(JSON.stringify(sampleEvent(1)));
  const header = headers['x-service-signature'] ?? '';
  const encoded = header.slice('ed25519='.length);
  const accepts = (value: string | string[] | undefined, bytes = body): boolean =>
    verifySignature(value, bytes, sender.publicKey);

  it('accepts the sender’s signature over exactly the bytes sent, also with the padding of base64', () => {
    for (const value of [header, `${header}==`]) expect(accepts(value)).to.equal(true);
  });

  it('accepts a signed body that is empty or is not text', () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from([0xff, 0x00, 0xfe])]) {
      expect(accepts(sender.signed(bytes).headers['x-service-signature'], bytes)).to.equal(true);
    }
  });

  it('refuses a body in which one bit changed, the same JSON written differently, and another sender', () => {
    const changed = Buffer.from(body);
    changed[changed.length - 1]! ^= 1;
    const rewritten = Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2));
    for (const other of [changed, rewritten]) expect(accepts(header, other)).to.equal(false);
    expect(accepts(newSender().signed(body).headers['x-service-signature'])).to.equal(false);
  });

  const flipped = Buffer.from(encoded, 'base64url');
  flipped[0]! ^= 1;
  const longer = Buffer.concat([flipped, flipped.subarray(0, 1)]);
  for (const value of [
    undefined,
    '',
    'ed25519=',
    encoded,
    `ED25519=${encoded}`,
    `sha256=${encoded}`,
    `ed25519= ${encoded}`,
    header.slice(0, -1),
    `ed25519=${longer.toString('base64url')}`,
    `ed25519=${flipped.toString('base64url')}`,
    `${header}!!`,
    `ed25519=${encoded.slice(0, 40)}*${encoded.slice(40)}`,
    `ed25519=${Buffer.from(encoded, 'base64url').toString('hex')}`,
    'ed25519=☃☃☃',
    // Repeated, as Node.js joins it, and as a list.
    `${header}, ${header}`,
    [header, header],
  ])
    it(`refuses the header ${String(value).replaceAll(encoded, '…')}`, () => {
      expect(accepts(value)).to.equal(false);
    });
});
