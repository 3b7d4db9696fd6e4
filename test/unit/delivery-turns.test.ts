import { expect } from 'chai';
import { nextTurn, type Turn, type WorkerState } from '../../service/delivery/worker';
import type { ClaimedQueue } from '../../service/outbox/claim-queues';

const NOW = 1_000_000;
const TERMS = { concurrency: 2, leaseMs: 20_000 };
const IDLE_MS = 60_000;
const BUSY_MS = 1_000;

const STATE: WorkerState = {
  claimed: [],
  underWay: 0,
  ended: [],
  pace: 0,
  mayBeDue: false,
  dueAt: Infinity,
  lacksSlot: false,
  lostLease: undefined,
  isStopped: false,
};

const claimed = (count: number, leasedForMs = TERMS.leaseMs): ClaimedQueue[] =>
  Array.from({ length: count }, (_, token) => ({
    channel: 1,
    token,
    lease: 'a lease',
    leasedUntil: NOW + leasedForMs,
    firstAttemptedAt: NOW,
    deliveries: [],
  }));
const ended = claimed(1).map((queue) => ({ queue, delivered: [] }));

/** State of the worker, and what it does next. */
const TABLE: [string, Partial<WorkerState>, Partial<Turn>][] = [
  ['sleeps while nothing waits', {}, { isSettling: false, isDue: false, begin: 0, sleepMs: IDLE_MS }],
  ['claims when it is woken', { mayBeDue: true }, { isDue: true, claim: 4 }],
  ['sleeps until a retry is due', { dueAt: NOW + 5_000 }, { isDue: false, sleepMs: 5_000 }],
  ['claims a retry that is due', { dueAt: NOW }, { isDue: true, claim: 4, sleepMs: 100 }],
  ['begins as many as it may', { claimed: claimed(3) }, { begin: 2, isReleasing: false, claim: 1 }],
  ['begins none beside those under way', { claimed: claimed(3), underWay: 2 }, { begin: 0, claim: 0 }],
  ['claims behind those under way', { mayBeDue: true, underWay: 2 }, { claim: 2, sleepMs: BUSY_MS }],
  ['claims nothing while it lacks a slot', { claimed: claimed(1), lacksSlot: true }, { claim: 0 }],
  ['claims anew once it lacks none', { lacksSlot: true, mayBeDue: true }, { claim: 4 }],
  ['settles at once if little is claimed', { ended }, { isSettling: true, sleepMs: 0 }],
  ['settles at once if half is claimed', { ended, claimed: claimed(1), underWay: 2 }, { sleepMs: 0 }],
  [
    'settles later, with others, if more is claimed',
    { ended, claimed: claimed(2), underWay: 2 },
    { isSettling: true, sleepMs: BUSY_MS },
  ],
  [
    'releases what waited for half of its lease',
    { claimed: claimed(2, TERMS.leaseMs / 2 - 1), lacksSlot: true, mayBeDue: true },
    { isReleasing: true, isSettling: true, begin: 0, claim: 4, sleepMs: 0 },
  ],
  [
    'keeps what may still begin',
    { claimed: claimed(2, TERMS.leaseMs / 2) },
    { isReleasing: false, begin: 2 },
  ],
  ['claims ahead what it sends meanwhile', { mayBeDue: true, pace: 20 }, { claim: 22 }],
  ['claims ahead in proportion to its share', { mayBeDue: true, pace: 1_000 }, { claim: 2 + 2 * 32 }],
  ['releases a claim that may have been committed', { lostLease: 'a lease' }, { isSettling: true }],
  [
    'releases, and claims nothing, when it stops',
    { isStopped: true, mayBeDue: true, claimed: claimed(2) },
    { isReleasing: true, isSettling: true, claim: 0, begin: 0, sleepMs: 0 },
  ],
  [
    'waits at the stop for those under way',
    { isStopped: true, underWay: 1 },
    { isSettling: false, sleepMs: BUSY_MS },
  ],
];

/** The same, while other processes have all of the limit. */
const WITHOUT_SHARE: typeof TABLE = [
  ['sleeps although a delivery is due', { dueAt: NOW, mayBeDue: true }, { claim: 0, sleepMs: IDLE_MS }],
  [
    'releases what it has claimed, and settles what has ended',
    { dueAt: NOW, claimed: claimed(1), ended, pace: 20 },
    { isReleasing: true, isSettling: true, claim: 0, begin: 0, sleepMs: 0 },
  ],
  ['waits for those under way', { dueAt: NOW, underWay: 1 }, { claim: 0, begin: 0, sleepMs: BUSY_MS }],
];

describe('a turn of delivery', () => {
  for (const [outcome, state, turn] of TABLE)
    it(outcome, () => expect(nextTurn({ ...STATE, ...state }, TERMS, NOW)).to.include(turn));
  for (const [outcome, state, turn] of WITHOUT_SHARE)
    it(`${outcome}, without a share`, () =>
      expect(nextTurn({ ...STATE, ...state }, { ...TERMS, concurrency: 0 }, NOW)).to.include(turn));
});
