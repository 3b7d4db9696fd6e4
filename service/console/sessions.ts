import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../base/clock';
import { createAttempts } from './attempts';
import { createTokenSigner, newTokenId, type ConsoleKeys, type TokenFacts } from './session-token';
import type { LogIn, Role } from './views';

/** The outcome of an attempt to log in. `cookie`: the value that the browser keeps. */
export type LoggedIn = { session: TokenFacts; cookie: string } | { waitMs: number } | 'wrong';

/** Sessions of the console. They are in their cookies: this process keeps only those that were ended. */
export interface Sessions {
  /** `address`: where the attempt comes from. */
  logIn(given: LogIn, address: string): LoggedIn;
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

export function createSessions(
  keys: ConsoleKeys,
  { clock, randomBytes }: { clock: Clock; randomBytes: (size: number) => Buffer },
): Sessions {
  const attempts = createAttempts(clock);
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

  function begin(role: Role): LoggedIn {
    const session = { role, expiresAt: clock.now() + SESSION_MS, id: newTokenId(randomBytes) };
    return { session, cookie: sessionTokens.sign(session) };
  }

  return {
    logIn(given, address) {
      // A link is too long to be guessed, so it need not wait.
      if ('link' in given) {
        const link = linkTokens.read(given.link);
        if (!isValid(link)) return 'wrong';
        spend(link);
        return begin(link.role);
      }
      // Behind a proxy all have one address, so the right key never waits for a stranger's wrong ones.
      const role = roleOf(given.key, keys);
      if (role !== undefined) return begin(role);
      const waitMs = attempts.waitOf(address);
      if (waitMs > 0) return { waitMs };
      attempts.failed(address);
      return 'wrong';
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

/** Both comparisons are always made, each in constant time. */
function roleOf(key: string, { adminApiKey, readKey }: ConsoleKeys): Role | undefined {
  const isAdmin = isSame(key, adminApiKey);
  const isReader = isSame(key, readKey ?? adminApiKey) && readKey !== undefined;
  if (isAdmin) return 'operator';
  return isReader ? 'reader' : undefined;
}

function isSame(given: string, right: string): boolean {
  const [left, other] = [given, right].map((text) => createHash('sha256').update(text).digest());
  return left !== undefined && other !== undefined && timingSafeEqual(left, other);
}
