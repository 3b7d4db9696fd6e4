import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import type { Context } from 'koa';
import { createTallies } from '../base/tallies';
import type { Clock } from '../base/time';
import { TooOftenError, type ServiceError } from '../base/errors';

/** Gives the answer to a wrong key: `wrong`, or 429 when an earlier one from the network was wrong too. */
export type RefuseKey = (ctx: Context, wrong: ServiceError) => ServiceError;

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
const FORGOTTEN_AFTER_MS = 10 * 60_000;

/**
 * Slows wrong keys down, for each network that they come from: each doubles the time that the next has to
 * wait. Ten minutes without another forget them. Behind a proxy all have one address, so the key is compared
 * first: the right one never waits for a stranger's wrong ones.
 */
export function createKeyRefusal(clock: Clock): RefuseKey {
  const failuresOf = createTallies(clock, FORGOTTEN_AFTER_MS);
  return (ctx, wrong) => {
    const failures = failuresOf(networkOf(ctx.req));
    const now = clock.now();
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** (failures.times - 1), LONGEST_WAIT_MS);
    const retryAfterMs = failures.times > 0 ? failures.at + waitMs - now : 0;
    if (retryAfterMs > 0) {
      const seconds = Math.ceil(retryAfterMs / 1_000);
      const why = `Try another key in ${seconds} s: an earlier one from this address was wrong too.`;
      return new TooOftenError('KEY_ATTEMPTS', `${wrong.message} ${why}`, { retryAfterMs });
    }
    failures.times++;
    failures.at = now;
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
