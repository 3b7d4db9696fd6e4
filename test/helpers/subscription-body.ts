import type { RequestError } from '../../service/base/errors';
import {
  parseReplacement,
  parseSubscription,
  type Subscription,
} from '../../service/subscriptions/subscription';

export const ID = '0192f3c8-5a00-7000-8000-000000000001';

/** The smallest body of a subscription, with these members. */
export function bodyWith(members: object = {}): object {
  return { sink: 'https://subscriber.example/webhook', protocol: 'HTTP', ...members };
}

/** The subscription that a POST with these members makes. */
export function subscriptionWith(members: object = {}): Subscription {
  return parseSubscription(bodyWith(members), ID);
}

/** The message of the refusal of a POST with these members. */
export function refusalOf(members: object = {}): string {
  return messageOf(() => subscriptionWith(members));
}

/** The message of the refusal of a PUT with these members. */
export function refusalOfPut(stored: Subscription, members: object = {}): string {
  return messageOf(() => parseReplacement(bodyWith(members), stored));
}

/** The message of SUBSCRIPTION_INVALID, which the function must throw. */
export function messageOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    const { code, message } = error as RequestError;
    if (code === 'SUBSCRIPTION_INVALID') return message;
    throw error;
  }
  throw new Error('it was accepted');
}
