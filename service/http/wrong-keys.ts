import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import type { Context } from 'koa';
import type { Clock } from '../base/time';
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
    failures.delete(network);
    failures.set(network, { times: now - at < FORGOTTEN_AFTER_MS ? times + 1 : 1, at: now });
    const [first = network] = failures.keys();
    if (failures.size > MOST_NETWORKS) failures.delete(first);
    return wrong;
  };
}

/** The caller's IPv4 address, or the 64 bits of an IPv6 address that one caller is given whole. */
export function networkOf({ socket }: IncomingMessage): string {
  const { remoteAddress: address = '' } = socket;
  if (isIPv4(address.replace(/^::ffff:/, ''))) return address;
  const [first = [], last = []] = address.split('::').map((part) => part.split(':'));
  const zeros = Array<string>(8 - Math.min(8, first.length + last.length)).fill('0');
  return [...first, ...zeros, ...last].slice(0, 4).join(':');
}
