import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { createLogger } from '../../service/base/logger';
import {
  createDeliverySlots,
  type DeliverySlots,
  type SlotShare,
} from '../../service/delivery/delivery-slots';

const MOST = 64;
const ignore = (): void => undefined;

describe('the slots of deliveries', () => {
  let slots: DeliverySlots;
  let lines: { slots: number; remedy: string }[];

  beforeEach(() => {
    lines = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[0]) };
    const logger = createLogger({ level: 'warn', mask: (text) => text, destination });
    slots = createDeliverySlots({ most: MOST, time: systemTime, logger });
  });

  /** Takes all slots that the channel gets, up to a number. */
  function takeAll(share: SlotShare, wanted = MOST): number {
    let taken = 0;
    while (taken < wanted && share.take(ignore)) taken++;
    return taken;
  }

  function quick(): SlotShare {
    const share = slots.newShare(false);
    share.take(ignore);
    share.release(true);
    return share;
  }

  const slow = (): SlotShare => slots.newShare(true);

  it('are given to a new channel one at a time, until its sink has answered promptly', () => {
    const share = slots.newShare(false);
    expect(takeAll(share)).to.equal(1);
    share.release(undefined);
    expect(takeAll(share)).to.equal(1);
    share.release(true);
    expect(takeAll(share, 16)).to.equal(16);
  });

  it('are left to others by a channel that would take all', () => {
    expect(takeAll(quick())).to.equal(MOST / 2);
    expect(takeAll(quick())).to.equal(MOST / 4);
    expect(takeAll(quick())).to.equal(MOST / 8);
  });

  it('are never all held by channels whose sinks do not answer, however many there are', () => {
    const good = quick();
    const failing = Array.from({ length: 1_000 }, slow);
    expect(failing.reduce((sum, share) => sum + takeAll(share), 0)).to.equal(MOST / 2);
    const unknown = Array.from({ length: 1_000 }, () => slots.newShare(false));
    expect(unknown.reduce((sum, share) => sum + takeAll(share), 0)).to.equal(MOST / 4);
    expect(takeAll(good)).to.equal(MOST / 8);
  });

  it('count as those of a slow channel as soon as it is one', () => {
    const share = quick();
    expect(takeAll(share)).to.equal(MOST / 2);
    share.release(false);
    expect(takeAll(slow())).to.equal(1);
    share.release(true);
    expect(takeAll(slow(), 10)).to.equal(10);
  });

  it('go to the channels that wait, in turn, before the one that gives a slot back', () => {
    const holding = Array.from({ length: MOST / 2 }, slow);
    for (const share of holding) takeAll(share, 1);
    const order: string[] = [];
    const want = (name: string, share: SlotShare): void => {
      if (share.take(() => want(name, share))) order.push(name);
    };
    want('one', slow());
    want('two', slow());
    expect(order).to.deep.equal([]);
    for (const [index, share] of holding.slice(0, 3).entries()) {
      share.release(false);
      want(`again ${index}`, share);
    }
    expect(order).to.deep.equal(['one', 'two', 'again 0']);
  });

  it('are not offered to a channel that has left', () => {
    const hog = slow();
    takeAll(hog);
    const others = Array.from({ length: MOST }, slow);
    for (const one of others) takeAll(one);
    const late = slow();
    expect(late.take(() => expect.fail('it has left'))).to.equal(false);
    late.leave();
    for (const one of others) one.leave();
    hog.release(false);
  });

  it('close the connection that was idle the longest when a delivery needs its descriptor', () => {
    const connections = Array.from({ length: MOST }, () => ({}));
    const closed: object[] = [];
    for (const connection of connections)
      slots.idle.set(connection, () => {
        slots.idle.delete(connection);
        closed.push(connection);
      });
    const share = quick();
    takeAll(share, 3);
    expect(closed).to.have.ordered.members(connections.slice(0, 3));
    expect(slots.idle.size).to.equal(MOST - 3);
  });

  it('are reported with a remedy when a channel gets none, once a minute', () => {
    for (let count = 0; count < MOST; count++) takeAll(slow());
    expect(lines).to.have.length(1);
    expect(lines[0]?.slots).to.equal(MOST);
    expect(lines[0]?.remedy).to.match(/ulimit -n/);
  });
});
