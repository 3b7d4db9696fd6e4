import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Role } from './views';

/** The content of a token. It is used for the cookie of a session, and for a link that logs in once. */
export interface TokenFacts {
  role: Role;
  /** Epoch milliseconds. */
  expiresAt: number;
  /** Tells tokens apart. */
  id: string;
}

/** Makes and checks tokens under the keys of a service. */
export interface TokenSigner {
  sign(facts: TokenFacts): string;
  /** Undefined unless the token was signed under the same keys. The time is not checked. */
  read(token: string): TokenFacts | undefined;
}

/** The keys that logging in needs. */
export interface ConsoleKeys {
  adminApiKey: string;
  /** Undefined: nobody can log in to look only. */
  readKey: string | undefined;
}

const KEY_BYTES = 32;
const ID_BYTES = 16;
const FORM = /^(operator|reader)\.(\d{1,15})\.([\w-]{22})\.([\w-]{43})$/;

/**
 * Creates a signer. Its keys follow from those of the service, so that sessions outlast a restart and hold in
 * every process; a changed key ends those of its role. A reader's tokens follow from the reader's
 * key alone: they let nobody test guesses of the admin's. A token of one use is never valid in the other.
 */
export function createTokenSigner(
  { adminApiKey, readKey }: ConsoleKeys,
  use: 'session' | 'link',
): TokenSigner {
  const keyOf = (role: Role, secret: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, '', `console ${use} ${role}`, KEY_BYTES));
  const keys: Record<Role, Buffer | undefined> = {
    operator: keyOf('operator', adminApiKey),
    reader: readKey === undefined ? undefined : keyOf('reader', readKey),
  };
  const macOf = (text: string, key: Buffer): Buffer => createHmac('sha256', key).update(text).digest();
  return {
    sign({ role, expiresAt, id }) {
      const key = keys[role];
      if (key === undefined) throw new Error(`There is no key for the role ${role}.`);
      const text = `${role}.${expiresAt}.${id}`;
      return `${text}.${macOf(text, key).toString('base64url')}`;
    },
    read(token) {
      const [, role = '', expiresAt = '', id = '', mac = ''] = FORM.exec(token) ?? [];
      const key = role === 'operator' || role === 'reader' ? keys[role] : undefined;
      if (key === undefined) return undefined;
      const right = macOf(`${role}.${expiresAt}.${id}`, key);
      const given = Buffer.from(mac, 'base64url');
      if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
      return { role: role as Role, expiresAt: Number(expiresAt), id };
    },
  };
}

/** A new id of a token. */
export function newTokenId(randomBytes: (size: number) => Buffer): string {
  return randomBytes(ID_BYTES).toString('base64url');
}
