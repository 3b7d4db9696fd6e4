import type { Child } from './child-process';

/** The line that the receiver prints for each delivery whose signature verified. */
interface VerifiedLine {
  verified: true;
  type: string;
  id: string;
  subject: string;
}

const PREFIX = 'com.service.etr.';

/** What the receiver has verified. */
export interface VerifiedWebhooks {
  /** Types without their prefix, in the order of arrival. */
  types: string[];
  /** Resolves when at least so many have come; rejects after the time given. */
  count(least: number, withinMs: number): Promise<void>;
}

/** Follows the receiver's output and calls `onWebhook` for each verified webhook. */
export function followWebhooks(
  receiver: Child,
  onWebhook: (type: string, id: string) => void,
): VerifiedWebhooks {
  const types: string[] = [];
  const waiting = new Set<() => void>();
  receiver.onLine((line) => {
    const webhook = parse(line);
    if (!webhook) return;
    const type = webhook.type.replace(PREFIX, '');
    types.push(type);
    onWebhook(type, webhook.id);
    for (const check of waiting) check();
  });
  return {
    types,
    count: (least, withinMs) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(
            new Error(`${types.length} of ${least} expected webhooks were verified within ${withinMs} ms`),
          );
        }, withinMs);
        const check = (): void => {
          if (types.length < least) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}

function parse(line: string): VerifiedLine | undefined {
  try {
    const value = JSON.parse(line) as Partial<VerifiedLine>;
    return value.verified === true ? (value as VerifiedLine) : undefined;
  } catch {
    return undefined;
  }
}
