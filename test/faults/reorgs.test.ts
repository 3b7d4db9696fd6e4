import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { dedupeKeyOf } from '../../receiver/store';
import type { CloudEvent } from '../../service/events/cloud-event';
import { expectedEvents, type ExpectedEvent } from '../helpers/chain/expected-events';
import { eventually } from '../helpers/eventually';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import type { SignedCall } from '../helpers/chain/forkable-chain';
import {
  createForkedRegistry,
  eventsOf,
  MINT_TYPES,
  MINTERS,
  type ForkedRegistry,
} from '../helpers/chain/forked-registry';
import { metricOf } from '../helpers/processes/health-and-metrics';

const ORPHANED = 'etr_orphaned_delivered_events';

describe('event delivery when blocks are replaced', () => {
  let forked: ForkedRegistry;

  before(async () => {
    forked = await createForkedRegistry();
  });

  after(() => forked?.stop());

  const following = (name: string, act: (followed: FollowedRegistry) => Promise<void>): Promise<void> =>
    whileFollowing(forked.local, { name }, act);

  const reorganised = (followed: FollowedRegistry, times = 1) =>
    eventually('the reorganisation is noticed', () => followed.logged('chain reorganised')[times - 1]);

  /** The events that must be delivered of a transaction, as it is mined now. */
  async function onChain(call: SignedCall): Promise<ExpectedEvent[]> {
    const { client, registryAddress } = forked.local;
    const receipt = await client.getTransactionReceipt(call.hash);
    const events = await expectedEvents(client, registryAddress, receipt?.blockNumber ?? 0);
    return events.filter(({ data }) => data.transactionHash === call.hash);
  }

  it('withdraws undelivered events, and delivers those of the new branch in order', () =>
    following('undelivered', async (followed) => {
      followed.answer(500);
      const fork = await forked.fork();
      const lost = await forked.mint();
      await forked.mine(lost);
      await eventually('an attempt', () => followed.attempted.length > 0);

      await fork.back(1);
      await forked.mine(await forked.nominate(), await forked.mint({ minter: MINTERS[1] }));
      await forked.mine(await forked.nominate());
      const line = await reorganised(followed);
      followed.answer(200);
      await followed.allDeliveredOnce();
      expect(eventsOf(lost, followed.accepted)).to.deep.equal([]);
      // A receiver may have taken an event although it answered with a failure: this event is orphaned too.
      expect(line).to.include({ withdrawn: 5, orphaned: 1 });
      expect(followed.logged('event orphaned after failed attempts')).to.have.length(1);
      expect(await metricOf(followed.service.url, ORPHANED)).to.equal(0);
    }));

  it('logs and counts delivered events that are orphaned, and delivers the new branch', () =>
    following('delivered', async (followed) => {
      const fork = await forked.fork();
      const lost = await forked.mint();
      await forked.mine(lost);
      await followed.allDeliveredOnce();
      const delivered = followed.accepted.splice(0);

      await fork.back(1);
      await forked.mine(await forked.mint({ minter: MINTERS[1] }));
      await forked.mine();
      expect(await reorganised(followed)).to.include({ withdrawn: 0, orphaned: 5 });
      await followed.allDeliveredOnce();
      const lines = followed.logged('delivered event orphaned');
      expect(lines.map(({ eventId }) => eventId)).to.have.members(delivered.map(({ id }) => id));
      expect(await metricOf(followed.service.url, ORPHANED)).to.equal(5);
    }));

  it('waits for a delivery under way to learn whether its event was delivered', () =>
    following('under-way', async (followed) => {
      let end: ((status: number) => void) | undefined;
      followed.answer(() => new Promise((resolve) => (end = resolve)));
      const fork = await forked.fork();
      await forked.mine(await forked.mint());
      await eventually('a delivery is under way', () => end);

      await fork.back(1);
      await forked.mine(await forked.mint({ minter: MINTERS[1] }));
      await forked.mine();
      // Long enough for two looks at the chain, which must change nothing.
      await sleep(500);
      expect(followed.logged('chain reorganised')).to.deep.equal([]);
      followed.answer(200);
      end?.(200);
      expect(await reorganised(followed)).to.include({ withdrawn: 4, orphaned: 1 });
      expect(followed.logged('delivered event orphaned')).to.have.length(1);
      followed.accepted.splice(0, 1);
      await followed.allDeliveredOnce();
    }));

  /** Positions of a transaction in its new block. */
  const placesInBlock: Record<string, (again: SignedCall) => Promise<SignedCall[]>> = {
    alone: async (again) => [again],
    'after one other event': async (again) => [await forked.nominate({ first: true }), again],
    'after another mint': async (again) => [await forked.mint({ minter: MINTERS[1], first: true }), again],
  };

  Object.entries(placesInBlock).forEach(([place, transactions], index) => {
    it(`does not repeat a delivered transaction that is mined again ${place}`, () =>
      following(`delivered-again-${index}`, async (followed) => {
        const fork = await forked.fork();
        const again = await forked.mint();
        await forked.mine(again);
        await followed.allDeliveredOnce();

        await fork.back(1);
        const others = (await transactions(again)).filter((call) => call !== again);
        await forked.mine(...others, again);
        await forked.mine(await forked.nominate());
        await reorganised(followed);
        await followed.settled();
        expect(typesOf(again, followed.accepted)).to.deep.equal(MINT_TYPES);
        expect(await metricOf(followed.service.url, ORPHANED)).to.equal(0);
        for (const other of others)
          expect(withoutIds(eventsOf(other, followed.accepted))).to.deep.equal(await onChain(other));
      }));

    it(`delivers an undelivered transaction that is mined again ${place} once, as it is mined now`, () =>
      following(`undelivered-again-${index}`, async (followed) => {
        followed.answer(500);
        const fork = await forked.fork();
        const again = await forked.mint();
        await forked.mine(again);
        await eventually('an attempt', () => followed.attempted.length > 0);

        await fork.back(1);
        await forked.mine();
        await forked.mine(...(await transactions(again)));
        await reorganised(followed);
        followed.answer(200);
        await followed.allDeliveredOnce();
      }));

    it(`completes a partly delivered transaction that is mined again ${place}`, () =>
      following(`partly-again-${index}`, async (followed) => {
        let left = 2;
        followed.answer(() => (left-- > 0 ? 200 : 500));
        const fork = await forked.fork();
        const again = await forked.mint();
        await forked.mine(again);
        await eventually('two events and a failed attempt', () => followed.attempted.length > 2);

        await fork.back(1);
        await forked.mine(...(await transactions(again)));
        await forked.mine();
        await reorganised(followed);
        followed.answer(200);
        await followed.settled();
        expect(typesOf(again, followed.accepted)).to.deep.equal(MINT_TYPES);
        const afterwards = withoutIds(eventsOf(again, followed.accepted).slice(2));
        expect(afterwards).to.deep.equal((await onChain(again)).slice(2));
      }));
  });

  it('completes a partly delivered transaction that moves to the head of its block', () =>
    following('partly-earlier', async (followed) => {
      let left = 2;
      const fork = await forked.fork();
      const again = await forked.mint();
      followed.answer(({ data }) => (data.transactionHash === again.hash && left-- > 0 ? 200 : 500));
      await forked.mine(await forked.nominate({ first: true }), again);
      await eventually(
        'two events and a failed attempt',
        () => eventsOf(again, followed.attempted).length > 2,
      );

      await fork.back(1);
      await forked.mine(again);
      await forked.mine();
      await reorganised(followed);
      followed.answer(200);
      await followed.settled();
      const positions = eventsOf(again, followed.accepted).map(({ data }) => data.logIndex);
      expect(positions).to.deep.equal([1, 2, 3, 4, 5]);
      expect(typesOf(again, followed.accepted)).to.deep.equal(MINT_TYPES);
      expect(new Set(followed.accepted.map(({ id }) => id)).size).to.equal(5);
    }));

  /** Delivers the events of a handover on one branch, and then replaces that branch by the other. */
  async function handedOver(
    before: 'nominate' | 'unrelated',
    after: 'nominate' | 'unrelated',
  ): Promise<CloudEvent[]> {
    const calls = await forked.handover();
    let events: CloudEvent[] = [];
    await following(`handed-over-${after}`, async (followed) => {
      const fork = await forked.fork();
      await forked.mine(calls[before]);
      await forked.mine(calls.handOver);
      await followed.allDeliveredOnce();
      await fork.back(1);
      await forked.mine(calls[after]);
      await forked.mine(calls.handOver);
      await forked.mine();
      await reorganised(followed);
      await followed.settled();
      events = eventsOf(calls.handOver, followed.accepted);
    });
    return events;
  }

  it('does not repeat a transaction that logs less when it is mined again', async () => {
    const events = await handedOver('nominate', 'unrelated');
    expect(events.map(briefly)).to.deep.equal([
      '0 beneficiary_transfer',
      '1 nomination',
      '2 holder_transfer',
    ]);
  });

  it('delivers an additional log of a transaction that is mined again, under an id of its own', async () => {
    const events = await handedOver('unrelated', 'nominate');
    expect(events.map(briefly)).to.deep.equal([
      '0 beneficiary_transfer',
      '1 holder_transfer',
      '1 nomination',
    ]);
    expect(new Set(events.map(({ id }) => id)).size).to.equal(3);
    expect(new Set(events.map((event) => dedupeKeyOf(event))).size).to.equal(3);
  });
});

function typesOf(call: SignedCall, events: readonly CloudEvent[]): string[] {
  return eventsOf(call, events).map(({ type }) => type);
}

function briefly({ type, data }: CloudEvent): string {
  return `${data.logIndex} ${type.split('.').at(-1)}`;
}

function withoutIds(events: readonly CloudEvent[]): ExpectedEvent[] {
  return events.map((event) => {
    const copy: Partial<CloudEvent> = { ...event };
    delete copy.id;
    return copy as ExpectedEvent;
  });
}
