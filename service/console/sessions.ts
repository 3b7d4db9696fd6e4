import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { AccessKeys, Holder } from '../access/access-keys';
import { orUndefined } from '../base/errors';
import { seal, unseal } from '../base/seal';
import type { Clock } from '../base/time';
import type { LogIn, Role, Session } from './views';

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
  end(cookie: string): void;
}

/** A session, and the holder of the key with a scope that it began with. */
export type PageSession = Omit<Session, 'holder'> & { holder?: Holder };

/** The content of a token. `key`: that of a holder. */
type Sealed = Pick<Session, 'role' | 'expiresAt'> & { key?: string };

/** How long a session lasts: that of a holder until the key ends, and a day at most, as that of a wallet. */
const SESSION_MS = 12 * 3_600_000;
const LONGEST_OF_HOLDER_MS = 24 * 3_600_000;
const LINK_MS = 15 * 60_000;
/** More sessions of holders are not remembered when they are ended. */
const MOST_SPENT = 10_000;

const ROLES = ['operator', 'reader', 'holder'] as const satisfies Role[];

/** The key that logs in to a role. Undefined: nobody can. Holders have keys of their own. */
export type ConsoleKeys = Readonly<Partial<Record<Role, string | undefined>>>;

interface SessionParts {
  clock: Clock;
  sealingKey: Uint8Array;
  accessKeys: Pick<AccessKeys, 'find'>;
}

/**
 * Cookies and links are sealed, so that they outlast a restart and hold in every process. One of a role ends
 * when the key of the role is changed.
 *
 * @param service tells a service from others that share its database.
 * @param sealingKey 32 random bytes, which all processes have: nobody else can test guesses of keys.
 */
export function createSessions(
  keys: ConsoleKeys,
  service: readonly unknown[],
  { clock, sealingKey, accessKeys }: SessionParts,
): Sessions {
  const name = createHmac('sha256', sealingKey).update(JSON.stringify(service)).digest('hex');
  /** Links that were used and sessions that were ended, with the time when they expire. */
  const spent = new Map<string, number>();

  const contextOf = (use: 'session' | 'link', role: Role): string => `console ${use} ${role} ${keys[role]}`;

  function write(use: 'session' | 'link', session: Sealed): string {
    return seal(sealingKey, Buffer.from(JSON.stringify(session)), contextOf(use, session.role));
  }

  function read(use: 'session' | 'link', token: string): Sealed | undefined {
    const [content] = ROLES.flatMap(
      (role) => orUndefined(() => unseal(sealingKey, token, contextOf(use, role)).toString()) ?? [],
    );
    const session = content && (JSON.parse(content) as Sealed);
    return session && session.expiresAt > clock.now() && !spent.has(token) ? session : undefined;
  }

  /** The session or link that a token stands for, which has no use any more. */
  function spend(use: 'session' | 'link', token: string): Sealed | undefined {
    const found = read(use, token);
    for (const [one, until] of spent) if (until <= clock.now()) spent.delete(one);
    // Anybody with a wallet may log in and out.
    if (found && (found.role !== 'holder' || spent.size < MOST_SPENT)) spent.set(token, found.expiresAt);
    return found;
  }

  return {
    cookieName: `console-${name.slice(0, 12)}`,
    async logIn(proof) {
      const role =
        'link' in proof ? spend('link', proof.link)?.role : ROLES.find((one) => isSame(proof.key, keys[one]));
      const sealed = role && { role, expiresAt: clock.now() + SESSION_MS };
      if (sealed) return { session: { ...sealed, owner: role }, cookie: write('session', sealed) };
      const key = 'key' in proof ? proof.key : '';
      const holder = await accessKeys.find(key);
      if (!holder?.may.includes('read')) return undefined;
      const expiresAt = Math.min(holder.expiresAt, clock.now() + LONGEST_OF_HOLDER_MS);
      const ofHolder = { role: 'holder', expiresAt } as const;
      const session = { ...ofHolder, owner: holder.owner, holder };
      return { session, cookie: write('session', { ...ofHolder, key }) };
    },
    newLink: () => write('link', { role: 'operator', expiresAt: clock.now() + LINK_MS }),
    async find(cookie) {
      const sealed = read('session', cookie);
      if (sealed === undefined) return undefined;
      const { key, role, expiresAt } = sealed;
      if (key === undefined) return { role, owner: role, expiresAt };
      const holder = await accessKeys.find(key);
      return holder && { role, owner: holder.owner, expiresAt, holder };
    },
    end: (cookie) => void spend('session', cookie),
  };
}

/** Compares secrets. It takes the same time for every wrong one. Nothing is the same as no secret. */
export function isSame(given: string, right: string | undefined): boolean {
  const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();
  return right !== undefined && timingSafeEqual(sha256(given), sha256(right));
}
