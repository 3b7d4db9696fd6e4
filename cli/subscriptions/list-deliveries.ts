import { findFeeds } from '../../service/outbox/find-feeds';
import { channelKeysOf } from '../../service/outbox/channels';
import { parseTokenId } from '../../service/registry/token-id-forms';
import {
  listChannelDeliveries,
  type UndeliveredState,
  type Place,
  type UndeliveredEvent,
} from '../../service/outbox/undelivered';
import type { Answer } from '../answer';
import { invalid, unknownSubscription } from '../deliveries/show-deliveries';
import { printable, printableJson } from '../terminal/printable';
import { withSubscriptions } from './open-subscriptions';

const STATES: readonly string[] = ['waiting', 'failed', 'dead'];
/** Deliveries per query. */
const PAGE = 500;

/** Lists the undelivered events of a subscription, up to a number. */
export async function listDeliveries(
  id: string,
  { state, token, limit }: { state: string | undefined; token: string | undefined; limit: number },
): Promise<Answer> {
  if (state !== undefined && !STATES.includes(state))
    throw invalid(`--state must be one of ${STATES.join(', ')}.`);
  const tokenId = token === undefined ? undefined : parseTokenId(token)?.toString();
  if (token !== undefined && tokenId === undefined)
    throw invalid('--token is not a token id: give decimal digits, or 64 hexadecimal digits.');
  return withSubscriptions(async ({ database: { db } }) => {
    const feeds = await findFeeds(db);
    if ((await channelKeysOf(db, feeds, id)).length === 0) throw unknownSubscription(id);
    const all: UndeliveredEvent[] = [];
    let after: Place | undefined;
    do {
      const page = await listChannelDeliveries(db, feeds, {
        subscription: id,
        state: state as UndeliveredState | undefined,
        tokenId,
        after,
        limit: Math.min(PAGE, limit - all.length),
      });
      all.push(...page.deliveries);
      after = page.next;
    } while (after !== undefined && all.length < limit);
    const shown = all.map(({ nextAttemptAt, ...one }) => ({
      ...one,
      nextAttemptAt: nextAttemptAt === null ? null : new Date(nextAttemptAt).toISOString(),
    }));
    const lines = shown.map((one) => {
      const last = one.error === null ? '' : `, the last: ${printable(one.error)}`;
      return `${one.id}  ${one.type}  token ${one.tokenId}  ${one.state}, ${one.attempts} attempts${last}`;
    });
    return { lines: lines.length > 0 ? lines : ['nothing waits'], json: printableJson(shown), isYes: true };
  });
}
