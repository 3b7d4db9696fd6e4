import { expect } from 'chai';
import type { CloudEvent } from '../../service/events/cloud-event';
import { entriesFor, type Orphan } from '../../service/outbox/record-range';

const CHANNEL = 7;
const TOKEN = 3;
/** Keys of the event's row, and of the row that announces it again. */
const [KEY, AGAIN] = [21, 22];

type Fate = Partial<Record<'deliveredTo' | 'retractedFor', boolean>>;
interface Case {
  /** Undefined: the event is not an orphan. */
  orphan?: Fate;
  again?: number;
  row: number | undefined;
}

const CASES: Record<string, Case> = {
  'the event': { row: KEY },
  'the event, if it may only have been received': { orphan: {}, row: KEY },
  'nothing, where it was delivered': { orphan: { deliveredTo: true }, row: undefined },
  'the further announcement, where it was retracted': {
    orphan: { retractedFor: true },
    again: AGAIN,
    row: AGAIN,
  },
  'the further announcement, where it was delivered and retracted': {
    orphan: { deliveredTo: true, retractedFor: true },
    again: AGAIN,
    row: AGAIN,
  },
  'the event, where another channel got the further announcement': { orphan: {}, again: AGAIN, row: KEY },
};

describe('the entries of an event in the queues', () => {
  for (const [outcome, { orphan, again, row }] of Object.entries(CASES))
    it(`are ${outcome}`, () => {
      const cloudEvent = {} as CloudEvent;
      const channelIf = (is = false): ReadonlySet<number> => new Set(is ? [CHANNEL] : []);
      const asOrphan: Orphan | undefined = orphan && {
        key: KEY,
        sent: cloudEvent,
        isAttempted: true,
        isInStream: true,
        deliveredTo: channelIf(orphan.deliveredTo),
        retractedFor: channelIf(orphan.retractedFor),
      };
      const event = { token: TOKEN, orphan: asOrphan, key: KEY, again };
      expect(entriesFor(event, [CHANNEL])).to.deep.equal(
        row === undefined ? [] : [{ channel: CHANNEL, token: TOKEN, event: row }],
      );
    });
});
