import type { Redelivery } from '../requests/api';
import { countOf } from '../text/relative-time';

/** The result of a redelivery, in words. */
export function redeliveryResult({ registries }: Redelivery): {
  tone: 'good' | 'wait';
  words: string;
} {
  const sum = (member: 'queued' | 'alreadyWaiting'): number =>
    registries.reduce((total, registry) => total + registry[member], 0);
  const queued = sum('queued');
  const waiting = sum('alreadyWaiting');
  if (queued === 0 && waiting === 0)
    return {
      tone: 'wait',
      words: 'Nothing is sent: the subscription does not want it now, or it was removed because it was old.',
    };
  const parts = [
    ...(queued > 0 ? [`${countOf(queued, 'event')} will be sent again`] : []),
    ...(waiting > 0 ? [`${countOf(waiting, 'event')} waited already`] : []),
  ];
  return { tone: 'good', words: `${parts.join(', and ')}.` };
}
