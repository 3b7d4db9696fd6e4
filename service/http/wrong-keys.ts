import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import type { Context } from 'koa';
import type { Clock } from '../base/time';
import { TooOftenError } from '../base/errors';
import { HttpError } from './errors';

/** Gives the answer to a wrong key: `wrong`, or 429 when an earlier one from the network was wrong too. */
export type RefuseKey = (ctx: Context, wrong: HttpError) => HttpError;

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
const FORGOTTEN_AFTER_MS = 10 * 60_000;
/** The network that failed first is forgotten when there are more. */
const MOST_NETWORKS = 1_000;

/**
 * Slows wrong keys down, for each network that they come from: each doubles the time that the next has to
 * wait. Ten minutes without another forget them. Behind a proxy all have one address, so the key is compared
 * first: the right one never waits for a stranger's wrong ones.
 */
export function createKeyRefusal(clock: Clock): RefuseKey {
  const failures = new Map<string, { times: number; at: number }>();
  return (ctx, wrong) => {
    const network = networkOf(ctx.req);
    const now = clock.now();
    const { times, at } = failures.get(network) ?? { times: 0, at: -Infinity };
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** (times - 1), LONGEST_WAIT_MS);
    // The clock was set back if `at` lies ahead.
    const seconds = at > now ? 0 : Math.ceil((at + waitMs - now) / 1_000);
    if (seconds > 0) {
      ctx.set('Retry-After', String(seconds));
      const why = `Try another key in ${seconds} s: an earlier one from this address was wrong too.`;
      return new HttpError(429, 'KEY_ATTEMPTS', `${wrong.message} ${why}`);
    }
    note(failures, network, { times: now - at < FORGOTTEN_AFTER_MS ? times + 1 : 1, at: now });
    return wrong;
  };
}

const MOST_LOGINS = 300;
const HOUR_MS = 3_600_000;

/**
 * Limits the log-ins of each network whose message is right: each makes a key, or asks nodes.
 *
 * @returns throws TooOftenError LOGIN_ATTEMPTS when there are more than 300 within an hour.
 */
export function createLoginLimit(clock: Clock): (ctx: Context) => void {
  const logins = new Map<string, { times: number; at: number }>();
  return (ctx) => {
    const network = networkOf(ctx.req);
    const now = clock.now();
    const last = logins.get(network);
    const { times, at } = last && Math.abs(now - last.at) < HOUR_MS ? last : { times: 0, at: now };
    const message = `Your network logged in ${MOST_LOGINS} times within an hour. Use the keys that it has.`;
    if (times >= MOST_LOGINS)
      throw new TooOftenError('LOGIN_ATTEMPTS', message, { retryAfterMs: at + HOUR_MS - now });
    note(logins, network, { times: times + 1, at });
  };
}

/** Keeps what is known of a network as the newest. */
function note<What>(known: Map<string, What>, network: string, what: What): void {
  known.delete(network);
  known.set(network, what);
  const [first = network] = known.keys();
  if (known.size > MOST_NETWORKS) known.delete(first);
}

/** The caller's IPv4 address, or the 64 bits of an IPv6 address that one caller is given whole. */
export function networkOf({ socket }: IncomingMessage): string {
  const { remoteAddress: address = '' } = socket;
  if (isIPv4(address.replace(/^::ffff:/, ''))) return address;
  const [first = [], last = []] = address.split('::').map((part) => part.split(':'));
  const zeros = Array<string>(8 - Math.min(8, first.length + last.length)).fill('0');
  return [...first, ...zeros, ...last].slice(0, 4).join(':');
}
