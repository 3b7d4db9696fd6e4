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

  it('accepts the sender’s signature over exactly the bytes sent', () => {
    expect(accepts(header)).to.equal(true);
  });

  it('accepts base64url with padding', () => {
    expect(accepts(`${header}==`)).to.equal(true);
  });

  it('accepts a signed body that is empty or is not text', () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from([0xff, 0x00, 0xfe])]) {
      expect(accepts(sender.signed(bytes).headers['x-service-signature'], bytes)).to.equal(true);
    }
  });

  it('refuses a body in which one bit changed', () => {
    const changed = Buffer.from(body);
    changed[changed.length - 1]! ^= 1;
    expect(accepts(header, changed)).to.equal(false);
  });

  it('refuses the same JSON written differently', () => {
    const rewritten = Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2));
    expect(accepts(header, rewritten)).to.equal(false);
  });

  it('refuses another sender’s signature', () => {
    expect(accepts(newSender().signed(body).headers['x-service-signature'])).to.equal(false);
  });

  const flipped = Buffer.from(encoded, 'base64url');
  flipped[0]! ^= 1;
  const malformed: [string, string | string[] | undefined][] = [
    ['missing', undefined],
    ['empty', ''],
    ['only the prefix', 'ed25519='],
    ['without the prefix', encoded],
    ['with the prefix in capitals', `ED25519=${encoded}`],
    ['of another algorithm', `sha256=${encoded}`],
    ['with a blank after the prefix', `ed25519= ${encoded}`],
    ['one character too short', header.slice(0, -1)],
    [
      'one byte too long',
      `ed25519=${Buffer.concat([flipped, flipped.subarray(0, 1)]).toString('base64url')}`,
    ],
    ['wrong in one bit', `ed25519=${flipped.toString('base64url')}`],
    ['followed by garbage', `${header}!!`],
    ['with garbage inside', `ed25519=${encoded.slice(0, 40)}*${encoded.slice(40)}`],
    ['hexadecimal', `ed25519=${Buffer.from(encoded, 'base64url').toString('hex')}`],
    ['not base64url at all', 'ed25519=☃☃☃'],
    ['repeated, as Node.js joins it', `${header}, ${header}`],
    ['repeated, as a list', [header, header]],
  ];
  for (const [how, value] of malformed) {
    it(`refuses a header that is ${how}`, () => {
      expect(accepts(value)).to.equal(false);
    });
  }
});
