import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { AccessKeys, Holder } from '../access/access-keys';
import type { Clock } from '../base/time';
import type { LogIn, Role } from './views';

/** Sessions of the console. They are in their cookies: this process keeps only those that were ended. */
export interface Sessions {
  /** Cookies do not tell the ports of a host apart: the name tells its services apart. */
  readonly cookieName: string;
  /** `cookie`: the value that the browser keeps. Undefined: the key or the link is wrong. */
  logIn(proof: LogIn): Promise<{ session: PageSession; cookie: string } | undefined>;
  /** A token of a link that logs an operator in once. */
  newLink(): string;
  /** Undefined: the session has ended, or never began. */
  find(cookie: string): Promise<PageSession | undefined>;
  /** Ends a session in this process. */
  end(session: TokenFacts): void;
}

/** A session, and the holder of the key with a scope that it began with. */
export type PageSession = TokenFacts & { holder?: Holder };

const HOUR_MS = 3_600_000;
/** How long a session lasts: that of a holder until the key ends, as that of a wallet does within a day. */
const SESSION_HOURS: Readonly<Record<Role, number>> = { operator: 12, reader: 12, holder: 24 };
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

interface SessionParts {
  clock: Clock;
  randomBytes: (size: number) => Buffer;
  /** The keys with a scope. */
  accessKeys: Pick<AccessKeys, 'find'>;
}

/** @param facts not the keys: a name that follows from a key would let anybody test guesses of it. */
export function createSessions(
  keys: ConsoleKeys,
  facts: ServiceFacts,
  { clock, randomBytes, accessKeys }: SessionParts,
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

  function begin(role: Role, holder?: Holder): { session: PageSession; cookie: string } {
    const expiresAt = Math.min(clock.now() + SESSION_HOURS[role] * HOUR_MS, holder?.expiresAt ?? Infinity);
    const session = { role, expiresAt, id: newTokenId(randomBytes) + (holder?.id ?? '') };
    return { session: { ...session, ...(holder && { holder }) }, cookie: sessionTokens.sign(session) };
  }

  return {
    cookieName,
    async logIn(proof) {
      if ('link' in proof) {
        const link = linkTokens.read(proof.link);
        if (!isValid(link)) return undefined;
        spend(link);
        return begin(link.role);
      }
      const role = roleOf(proof.key, keys);
      if (role !== undefined) return begin(role);
      const holder = await accessKeys.find(proof.key);
      return holder?.may.includes('read') ? begin('holder', holder) : undefined;
    },
    newLink: () =>
      linkTokens.sign({ role: 'operator', expiresAt: clock.now() + LINK_MS, id: newTokenId(randomBytes) }),
    async find(cookie) {
      const session = sessionTokens.read(cookie);
      if (!isValid(session)) return undefined;
      if (session.role !== 'holder') return session;
      const holder = await accessKeys.find({ id: session.id.slice(ID_CHARACTERS) });
      return holder && { ...session, holder };
    },
    end: spend,
  };
}

function roleOf(key: string, keys: ConsoleKeys): 'operator' | 'reader' | undefined {
  return (['operator', 'reader'] as const).find(
    (role) => isSame(key, keys[role] ?? '') && keys[role] !== undefined,
  );
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
  /** Tells tokens apart. In that of a holder's session the id of the key follows. */
  id: string;
}

/**
 * The key that logs in to a role; undefined: nobody can. `holder` logs nobody in: it is a secret of 32 bytes
 * for the sessions of holders, who must not test guesses of the other keys.
 */
export type ConsoleKeys = Readonly<
  Record<'operator' | 'reader', string | undefined> & { holder: Uint8Array }
>;

const KEY_BYTES = 32;
const ID_BYTES = 16;
/** Of base64url. */
const ID_CHARACTERS = 22;
const FORM = /^(operator|reader|holder)\.(\d{1,15})\.([\w-]{22}(?:[\w-]{36})?)\.([\w-]{43})$/;

/**
 * Creates a signer. Its keys follow from those of the service, so that sessions outlast a restart and hold in
 * every process; a changed key ends those of its role. A reader's tokens follow from the reader's
 * key alone: they let nobody test guesses of the admin's. A token of one use is never valid in the other.
 */
function createTokenSigner(secrets: ConsoleKeys, use: 'session' | 'link') {
  const keys = new Map<string, Buffer>();
  for (const [role, secret] of Object.entries(secrets) as [Role, string | Uint8Array | undefined][]) {
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
