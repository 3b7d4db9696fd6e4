import type { Redelivery } from '../requests/api';
import { countOf } from '../text/relative-time';

/** The result of a redelivery, in words. */
export function redeliveryResult({ registries }: Redelivery): { tone: 'good' | 'wait'; words: string } {
  const sent = registries.reduce((sum, { queued, alreadyWaiting }) => sum + queued + alreadyWaiting, 0);
  if (sent > 0) return { tone: 'good', words: `${countOf(sent, 'event')} will be sent.` };
  const words =
    'Nothing is sent: the subscription does not want it now, or it was removed because it was old.';
  return { tone: 'wait', words };
}
