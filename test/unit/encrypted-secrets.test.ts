import { createDecipheriv } from 'node:crypto';
import { expect } from 'chai';
import { ConfigurationError, RequestError, ServiceError } from '../../service/base/errors';
import { decryptSecrets, encryptSecrets } from '../../service/subscriptions/secrets';

const TEXT = '{"headers":{"Authorization":"Bearer schlüssel-of-acme"}}';
const NAME = '0f8fad5b-d9cb-469f-a165-70867728950e';

describe('secrets of subscriptions', () => {
  const key = Buffer.alloc(32, 7);
  const thrownBy = (call: () => unknown): ServiceError => {
    try {
      call();
    } catch (error) {
      if (error instanceof ServiceError) return error;
    }
    throw new Error('no error of the service was thrown');
  };

  it('are read with the key and the subscription with which they were encrypted', () => {
    for (const text of [TEXT, '', '\u0000', 'x'.repeat(100_000)])
      expect(decryptSecrets(key, encryptSecrets(key, text, NAME), NAME)).to.equal(text);
  });

  it('are encrypted with AES-256-GCM, a random nonce, and the name as additional data', () => {
    const encrypted = encryptSecrets(key, TEXT, NAME);
    expect(encrypted).to.match(/^1\.[\w-]+$/);
    const bytes = Buffer.from(encrypted.slice(2), 'base64url');
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(Buffer.from(NAME));
    decipher.setAuthTag(bytes.subarray(-16));
    expect(decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8')).to.equal(
      TEXT,
    );
    expect(encryptSecrets(key, TEXT, NAME)).not.to.equal(encryptSecrets(key, TEXT, NAME));
  });

  it('cannot be encrypted without SECRETS_KEY: the caller is told how to make one', () => {
    const error = thrownBy(() => encryptSecrets(undefined, TEXT, NAME));
    expect(error).to.be.instanceOf(RequestError).and.include({ code: 'SECRETS_KEY_MISSING' });
    expect(error.message).to.contain('openssl rand -base64 32').and.not.contain('acme');
  });

  it('cannot be read without SECRETS_KEY', () => {
    const error = thrownBy(() => decryptSecrets(undefined, encryptSecrets(key, TEXT, NAME), NAME));
    expect(error).to.be.instanceOf(ConfigurationError).and.include({ code: 'SECRETS_KEY_MISSING' });
    expect(error.message).to.contain(NAME);
    expect(error.remedy).to.contain('SECRETS_KEY');
  });

  const changed = (encrypted: string, at: number): string => {
    const bytes = Buffer.from(encrypted.slice(2), 'base64url');
    bytes[at < 0 ? bytes.length + at : at]! ^= 1;
    return `1.${bytes.toString('base64url')}`;
  };
  const encrypted = encryptSecrets(key, TEXT, NAME);
  for (const [what, call] of [
    ['with another key', () => decryptSecrets(Buffer.alloc(32, 8), encrypted, NAME)],
    ['for another subscription', () => decryptSecrets(key, encrypted, 'default')],
    ['with a changed nonce', () => decryptSecrets(key, changed(encrypted, 0), NAME)],
    ['with a changed text', () => decryptSecrets(key, changed(encrypted, 12), NAME)],
    ['with a changed tag', () => decryptSecrets(key, changed(encrypted, -1), NAME)],
    ['with a part missing', () => decryptSecrets(key, encrypted.slice(0, 20), NAME)],
    ['with nothing but a version', () => decryptSecrets(key, '1.', NAME)],
    ['of another version', () => decryptSecrets(key, encrypted.replace('1.', '2.'), NAME)],
  ] as const)
    it(`are refused as SECRETS_KEY_WRONG ${what}`, () => {
      const error = thrownBy(call);
      expect(error)
        .to.be.instanceOf(ConfigurationError)
        .and.include({ code: 'SECRETS_KEY_WRONG', retryable: false });
      expect(error.remedy).to.contain('SECRETS_KEY');
      expect(error.message + String(error.cause)).not.to.contain('acme');
    });
});
