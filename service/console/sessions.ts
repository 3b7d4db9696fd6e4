import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../base/time';
import type { LogIn, Role } from './views';

/** Sessions of the console. They are in their cookies: this process keeps only those that were ended. */
export interface Sessions {
  /** Cookies do not tell the ports of a host apart: the name tells its services apart. */
  readonly cookieName: string;
  /** `cookie`: the value that the browser keeps. Undefined: the key or the link is wrong. */
  logIn(proof: LogIn): { session: TokenFacts; cookie: string } | undefined;
  /** A token of a link that logs an operator in once. */
  newLink(): string;
  /** Undefined: the session has ended, or never began. */
  find(cookie: string): TokenFacts | undefined;
  /** Ends a session in this process. */
  end(session: TokenFacts): void;
}

/** How long a session lasts. */
export const SESSION_MS = 12 * 3_600_000;
const LINK_MS = 15 * 60_000;

/** Public facts that tell a service from others, and that all its processes have. */
export interface ServiceFacts {
  domain: string | undefined;
  chainId: number;
  registry: string | undefined;
  issuer: string | undefined;
  /** The id of the key that signs webhooks. */
  signingKeyId: string | undefined;
}

/** @param facts not the keys: a name that follows from a key would let anybody test guesses of it. */
export function createSessions(
  keys: ConsoleKeys,
  facts: ServiceFacts,
  { clock, randomBytes }: { clock: Clock; randomBytes: (size: number) => Buffer },
): Sessions {
  const { domain, chainId, registry, issuer, signingKeyId } = facts;
  const named = JSON.stringify([domain, chainId, registry?.toLowerCase(), issuer, signingKeyId]);
  const cookieName = `console-${createHash('sha256').update(named).digest('hex').slice(0, 12)}`;
  const sessionTokens = createTokenSigner(keys, 'session');
  const linkTokens = createTokenSigner(keys, 'link');
  /** Ids of links that were used and of sessions that were ended, with the time when they expire. */
  const spent = new Map<string, number>();

  function spend({ id, expiresAt }: TokenFacts): void {
    for (const [one, until] of spent) if (until <= clock.now()) spent.delete(one);
    spent.set(id, expiresAt);
  }

  function isValid(facts: TokenFacts | undefined): facts is TokenFacts {
    return facts !== undefined && facts.expiresAt > clock.now() && !spent.has(facts.id);
  }

  function begin(role: Role): { session: TokenFacts; cookie: string } {
    const session = { role, expiresAt: clock.now() + SESSION_MS, id: newTokenId(randomBytes) };
    return { session, cookie: sessionTokens.sign(session) };
  }

  return {
    cookieName,
    logIn(proof) {
      if ('link' in proof) {
        const link = linkTokens.read(proof.link);
        if (!isValid(link)) return undefined;
        spend(link);
        return begin(link.role);
      }
      const role = roleOf(proof.key, keys);
      return role && begin(role);
    },
    newLink: () =>
      linkTokens.sign({ role: 'operator', expiresAt: clock.now() + LINK_MS, id: newTokenId(randomBytes) }),
    find(cookie) {
      const session = sessionTokens.read(cookie);
      return isValid(session) ? session : undefined;
    },
    end: spend,
  };
}

function roleOf(key: string, keys: ConsoleKeys): Role | undefined {
  return ROLES.find((role) => isSame(key, keys[role] ?? '') && keys[role] !== undefined);
}

/** Compares secrets. It takes the same time for every wrong one. */
export function isSame(given: string, right: string): boolean {
  const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(sha256(given), sha256(right));
}

/** The content of a token. It is used for the cookie of a session, and for a link that logs in once. */
export interface TokenFacts {
  role: Role;
  /** Epoch milliseconds. */
  expiresAt: number;
  /** Tells tokens apart. */
  id: string;
}

const ROLES = ['operator', 'reader'] as const satisfies Role[];

/** The key that logs in to each role. Undefined: nobody can. */
export type ConsoleKeys = Readonly<Record<Role, string | undefined>>;

const KEY_BYTES = 32;
const ID_BYTES = 16;
const FORM = /^(operator|reader)\.(\d{1,15})\.([\w-]{22})\.([\w-]{43})$/;

/**
 * Creates a signer. Its keys follow from those of the service, so that sessions outlast a restart and hold in
 * every process; a changed key ends those of its role. A reader's tokens follow from the reader's
 * key alone: they let nobody test guesses of the admin's. A token of one use is never valid in the other.
 */
function createTokenSigner(secrets: ConsoleKeys, use: 'session' | 'link') {
  const keys = new Map<string, Buffer>();
  for (const role of ROLES) {
    const secret = secrets[role];
    if (secret === undefined) continue;
    keys.set(role, Buffer.from(hkdfSync('sha256', secret, '', `console ${use} ${role}`, KEY_BYTES)));
  }
  const macOf = (text: string, key: Buffer): Buffer => createHmac('sha256', key).update(text).digest();
  return {
    sign({ role, expiresAt, id }: TokenFacts): string {
      const key = keys.get(role);
      if (key === undefined) throw new Error(`There is no key for the role ${role}.`);
      const text = `${role}.${expiresAt}.${id}`;
      return `${text}.${macOf(text, key).toString('base64url')}`;
    },
    /** Undefined unless the token was signed under the same keys. The time is not checked. */
    read(token: string): TokenFacts | undefined {
      const [, role = '', expiresAt = '', id = '', mac = ''] = FORM.exec(token) ?? [];
      const key = keys.get(role);
      if (key === undefined) return undefined;
      const right = macOf(`${role}.${expiresAt}.${id}`, key);
      const given = Buffer.from(mac, 'base64url');
      if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
      return { role: role as Role, expiresAt: Number(expiresAt), id };
    },
  };
}

function newTokenId(randomBytes: (size: number) => Buffer): string {
  return randomBytes(ID_BYTES).toString('base64url');
}
