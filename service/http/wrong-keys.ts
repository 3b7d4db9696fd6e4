import type { Context } from 'koa';
import type { Clock } from '../base/clock';
import { HttpError } from './middleware/errors';

/** Gives the answer to a wrong key: `wrong`, or 429 when an earlier one from the address was wrong too. */
export type RefuseKey = (ctx: Context, wrong: HttpError) => HttpError;

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
const FORGOTTEN_AFTER_MS = 10 * 60_000;
/** The address that failed first is forgotten when there are more. */
const MOST_ADDRESSES = 1_000;

/**
 * Slows wrong keys down, for each address that they come from: each doubles the time that the next has to
 * wait. Ten minutes without another forget them. Behind a proxy all have one address, so the key is compared
 * first: the right one never waits for a stranger's wrong ones.
 */
export function createKeyRefusal(clock: Clock): RefuseKey {
  const failures = new Map<string, { times: number; at: number }>();
  return (ctx, wrong) => {
    const address = ctx.req.socket.remoteAddress ?? '';
    const now = clock.now();
    const { times, at } = failures.get(address) ?? { times: 0, at: -Infinity };
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** (times - 1), LONGEST_WAIT_MS);
    const seconds = Math.ceil((at + waitMs - now) / 1_000);
    if (seconds > 0) {
      ctx.set('Retry-After', String(seconds));
      const why = `Try another key in ${seconds} s: an earlier one from this address was wrong too.`;
      return new HttpError(429, 'KEY_ATTEMPTS', `${wrong.message} ${why}`);
    }
    failures.delete(address);
    failures.set(address, { times: now - at < FORGOTTEN_AFTER_MS ? times + 1 : 1, at: now });
    const [first = address] = failures.keys();
    if (failures.size > MOST_ADDRESSES) failures.delete(first);
    return wrong;
  };
}
