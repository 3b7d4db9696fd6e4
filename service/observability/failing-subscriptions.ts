import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { repeat } from '../base/pause';
import type { SubscriptionsHealth } from '../subscriptions/subscription-health';

/** Interval of the checks. */
const LOOK_EVERY_MS = 2_000;

/** Writes a log line when a subscription begins to fail, and one when it recovers. */
export function startFailingCheck(
  ask: () => Promise<SubscriptionsHealth>,
  logger: Logger,
): { stop(): Promise<void> } {
  const failing = new Set<string>();
  return repeat(async (signal) => {
    try {
      const { troubled } = await ask();
      const now = new Map(troubled.map(({ id, failingSince }) => [id, failingSince]));
      for (const [subscription, since] of now)
        if (since !== undefined && !failing.has(subscription)) {
          failing.add(subscription);
          const failingSince = new Date(since).toISOString();
          logger.warn({ subscription, failingSince }, 'a subscription is failing: no delivery succeeds');
        }
      for (const subscription of failing)
        if (now.get(subscription) === undefined) {
          failing.delete(subscription);
          logger.info({ subscription }, 'a subscription is not failing any more');
        }
    } catch (error) {
      if (!signal.aborted)
        logger.warn({ error }, `the states of subscriptions cannot be read: ${messageOf(error)}`);
    }
  }, LOOK_EVERY_MS);
}
