import type { Redelivery } from '../requests/api';
import { countOf } from '../text/words';

/** The result of a redelivery, in words. `none`: why nothing is sent. */
export function redeliveryResult(
  { registries }: Redelivery,
  none: string,
): { tone: 'good' | 'wait'; words: string } {
  const sent = registries.reduce((sum, { queued, alreadyWaiting }) => sum + queued + alreadyWaiting, 0);
  if (sent > 0) return { tone: 'good', words: `${countOf(sent, 'event')} will be sent.` };
  return { tone: 'wait', words: `Nothing is sent: ${none}.` };
}
