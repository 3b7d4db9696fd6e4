import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { orUndefined } from '../base/errors';
import { seal, unseal } from '../base/seal';
import type { Clock } from '../base/time';
import type { LogIn, Role, Session } from './views';

/** Sessions of the console. They are in their cookies: this process keeps only those that were ended. */
export interface Sessions {
  /** Cookies do not tell the ports of a host apart: the name tells its services apart. */
  readonly cookieName: string;
  /** `cookie`: the value that the browser keeps. Undefined: the key or the link is wrong. */
  logIn(proof: LogIn): { session: Session; cookie: string } | undefined;
  /** A token of a link that logs an operator in once. */
  newLink(): string;
  /** Undefined: the session has ended, or never began. */
  find(cookie: string): Session | undefined;
  /** Ends a session in this process. */
  end(cookie: string): void;
}

/** How long a session lasts. */
export const SESSION_MS = 12 * 3_600_000;
const LINK_MS = 15 * 60_000;

const ROLES = ['operator', 'reader'] as const satisfies Role[];

/** The key that logs in to each role. Undefined: nobody can. */
export type ConsoleKeys = Readonly<Record<Role, string | undefined>>;

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
  { clock, sealingKey }: { clock: Clock; sealingKey: Uint8Array },
): Sessions {
  const name = createHmac('sha256', sealingKey).update(JSON.stringify(service)).digest('hex');
  /** Links that were used and sessions that were ended, with the time when they expire. */
  const spent = new Map<string, number>();

  const contextOf = (use: 'session' | 'link', role: Role): string => `console ${use} ${role} ${keys[role]}`;

  function write(use: 'session' | 'link', session: Session): string {
    return seal(sealingKey, Buffer.from(JSON.stringify(session)), contextOf(use, session.role));
  }

  function read(use: 'session' | 'link', token: string): Session | undefined {
    const [content] = ROLES.flatMap(
      (role) => orUndefined(() => unseal(sealingKey, token, contextOf(use, role)).toString()) ?? [],
    );
    const session = content && (JSON.parse(content) as Session);
    return session && session.expiresAt > clock.now() && !spent.has(token) ? session : undefined;
  }

  /** The session or link that a token stands for, which has no use any more. */
  function spend(use: 'session' | 'link', token: string): Session | undefined {
    const found = read(use, token);
    for (const [one, until] of spent) if (until <= clock.now()) spent.delete(one);
    if (found) spent.set(token, found.expiresAt);
    return found;
  }

  return {
    cookieName: `console-${name.slice(0, 12)}`,
    logIn(proof) {
      const role =
        'link' in proof ? spend('link', proof.link)?.role : ROLES.find((one) => isSame(proof.key, keys[one]));
      const session = role && { role, expiresAt: clock.now() + SESSION_MS };
      return session && { session, cookie: write('session', session) };
    },
    newLink: () => write('link', { role: 'operator', expiresAt: clock.now() + LINK_MS }),
    find: (cookie) => read('session', cookie),
    end: (cookie) => void spend('session', cookie),
  };
}

/** Compares secrets. It takes the same time for every wrong one. Nothing is the same as no secret. */
export function isSame(given: string, right: string | undefined): boolean {
  const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();
  return right !== undefined && timingSafeEqual(sha256(given), sha256(right));
}
