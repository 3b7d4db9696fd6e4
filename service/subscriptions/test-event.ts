import type { TestEvent } from '../../client/events';
import { TEST_TYPE } from '../events/event-types';

/** An event that tries a subscription out. It is about nothing on the chain, so it has no pair. */
export function testEventOf(subscription: string, id: string, now: number): TestEvent {
  return {
    specversion: '1.0',
    id,
    source: `urn:service:subscriptions:${subscription}`,
    type: TEST_TYPE,
    datacontenttype: 'application/json',
    time: new Date(now).toISOString(),
    data: { subscription, test: true },
  };
}
