import { EventEmitter, once } from 'node:events';
import type { Child } from './child-process';

/** The line that the receiver prints for each delivery with a valid signature. */
interface VerifiedLine {
  verified: true;
  type: string;
  id: string;
  subject: string;
}

const PREFIX = 'com.service.etr.';

/** The webhooks that the receiver has verified. */
export interface VerifiedWebhooks {
  /**
   * Resolves when this many webhooks have arrived and they are these, in order. Rejects with the missing ones
   * after the given time.
   */
  expect(types: readonly string[], withinMs: number): Promise<void>;
}

/** Follows the receiver's output and calls `onWebhook` for each verified webhook. */
export function followWebhooks(
  receiver: Child,
  onWebhook: (type: string, id: string) => void,
): VerifiedWebhooks {
  const arrived: string[] = [];
  const arrival = new EventEmitter();
  receiver.onLine((line) => {
    const webhook = parse(line);
    if (!webhook) return;
    const type = webhook.type.replace(PREFIX, '');
    arrived.push(type);
    onWebhook(type, webhook.id);
    arrival.emit('webhook');
  });
  return {
    async expect(types, withinMs) {
      const signal = AbortSignal.timeout(withinMs);
      while (arrived.length < types.length)
        await once(arrival, 'webhook', { signal }).catch(() => {
          const missing = missingFrom(types, arrived).join(', ');
          throw new Error(`Not every webhook was verified within ${withinMs / 1000} s. Missing: ${missing}.`);
        });
      if (types.every((type, index) => arrived[index] === type)) return;
      throw new Error(`Expected the webhooks ${types.join(', ')}; got ${arrived.join(', ')}.`);
    },
  };
}

/** The expected types that did not arrive; a type may be expected more than once. */
function missingFrom(expected: readonly string[], arrived: readonly string[]): string[] {
  const left = [...arrived];
  return expected.filter((type) => {
    const at = left.indexOf(type);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function parse(line: string): VerifiedLine | undefined {
  try {
    const value = JSON.parse(line) as Partial<VerifiedLine>;
    return value.verified === true ? (value as VerifiedLine) : undefined;
  } catch {
    return undefined;
  }
}
