import { expect } from 'chai';
import type { CloudEvent } from '../../../service/events/cloud-event';
import type { ExpectedEvent } from '../chain/expected-events';
import type { Delivery } from './recording-receiver';

/**
 * Expects the guarantees to every subscriber, even after failures: each event of the chain and no other,
 * signed, at least once; repetitions with the same bytes; the events of each token in the order of the
 * chain.
 *
 * @param mostBack the number of events that a repetition may go back. More than 0 if processes were killed:
 *   the events that were claimed together are then repeated together.
 */
export function expectPromisesKept(
  deliveries: readonly Delivery[],
  expected: readonly ExpectedEvent[],
  { mostBack = 0 } = {},
): void {
  const unverified = deliveries.filter(({ verified }) => !verified);
  expect(unverified, 'deliveries that do not verify').to.deep.equal([]);

  const firsts = new Map<string, Delivery>();
  for (const delivery of deliveries) {
    const first = firsts.get(delivery.event.id) ?? delivery;
    firsts.set(delivery.event.id, first);
    expect(delivery.body.equals(first.body), `bytes of ${delivery.event.id}`).to.equal(true);
  }
  const order = new Map(expected.map((event, index) => [placeOf(event), index]));
  const inChainOrder = (unordered: readonly CloudEvent[]): CloudEvent[] =>
    [...unordered].sort((left, right) => (order.get(placeOf(left)) ?? 0) - (order.get(placeOf(right)) ?? 0));
  const events = inChainOrder([...firsts.values()].map(({ event }) => event));
  // Missing events first: they say more than the difference of a thousand events.
  const [delivered, due] = [new Set(events.map(placeOf)), new Set(expected.map(placeOf))];
  expect(
    [...due].filter((place) => !delivered.has(place)),
    'missing',
  ).to.deep.equal([]);
  expect(
    [...delivered].filter((place) => !due.has(place)),
    'not of the chain',
  ).to.deep.equal([]);
  expect(events).to.have.length(expected.length);
  for (const [index, event] of events.entries()) expect(withoutId(event)).to.deep.equal(expected[index]);

  for (const ofOne of bySubject(deliveries).values()) {
    const inOrder = new Map(
      inChainOrder([...new Map(ofOne.map((one) => [one.id, one])).values()]).map(indexed),
    );
    const places = ofOne.map(({ id }) => inOrder.get(id) ?? 0);
    const steps = places.map((place, index) => place - (places[index - 1] ?? -1));
    // The same event again, the next one, or back to where a killed process had begun.
    const wrong = steps.filter((step) => step > 1 || step < -mostBack);
    expect(wrong, `order of one token: ${places.join(' ')}`).to.deep.equal([]);
  }
}

function indexed({ id }: CloudEvent, index: number): [string, number] {
  return [id, index];
}

/** The events of each token, and of the registry as a whole, whose subject is that of token 0 too. */
function bySubject(deliveries: readonly Delivery[]): Map<string, CloudEvent[]> {
  const groups = new Map<string, CloudEvent[]>();
  for (const { event } of deliveries) {
    const key = event.data.tokenIdHex ?? 'registry';
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(event);
  }
  return groups;
}

function placeOf({ data, type, subject }: ExpectedEvent): string {
  const { blockNumber, transactionHash, logIndex } = data;
  return `block ${blockNumber} log ${logIndex} of ${transactionHash}: ${type} of ${subject}`;
}

/** The event without its id, which the service chooses. */
export function withoutId(event: ExpectedEvent & { id?: string }): ExpectedEvent {
  const copy = { ...event };
  delete copy.id;
  return copy;
}
