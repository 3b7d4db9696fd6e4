import { expect } from 'chai';
import { type Stage, timelineOf, type TracedToken, waterfallOf } from '../../client/timeline';

type Event = TracedToken['endorsements'][number]['events'][number];
type Delivery = NonNullable<Event['deliveries']>[number];
type Issuing = NonNullable<TracedToken['issuing']>;

const BEGIN = Date.parse('2026-05-01T12:00:00Z');
/** A time, in milliseconds after the request. */
const at = (ms: number): string => new Date(BEGIN + ms).toISOString();

/** A document that was mined after a second, unless its times are others. */
function issued(times: Partial<Record<keyof Issuing, number | null>> = {}): Issuing {
  const usual = { receivedAt: 0, signingAt: 5, signedAt: 25, createdAt: 30, sentAt: 130, minedAt: 1_130 };
  const all = Object.entries({ ...usual, ...times }).map(([name, ms]) => [name, ms === null ? null : at(ms)]);
  return { failure: null, ...(Object.fromEntries(all) as Omit<Issuing, 'failure'>) };
}

const recorded = (type: string, ms: number, ...deliveries: Delivery[]): Event => ({
  type,
  recordedAt: at(ms),
  deliveries,
});

/** The attempts of a delivery: when they began, how long they took, and why they failed. */
const to = (subscription: string, ...attempts: [begin: number, ms: number, error?: string][]): Delivery => ({
  subscription,
  eachAttempt: attempts.map(([begin, milliseconds, error = null], index) => ({
    attempt: index + 1,
    attemptedAt: at(begin),
    status: error === null ? 200 : 500,
    error,
    milliseconds,
  })),
});

const tokenOf = (issuing: Issuing | null, ...events: Event[]): TracedToken => ({
  issuing,
  isWhole: true,
  endorsements: events.length === 0 ? [] : [{ events }, { events: [recorded('shred', 9_000)] }],
});

/** A stage in one line: `delivery of minted to default: 1230 + 8, answered 500`. */
function briefly({ stage, startedAt, milliseconds, event, subscription, error }: Stage): string {
  const about = event === null ? '' : ` of ${event} to ${subscription}`;
  const took = milliseconds === null ? '?' : milliseconds;
  return `${stage}${about}: ${startedAt - BEGIN} + ${took}${error === null ? '' : `, ${error}`}`;
}

const ISSUED = ['request: 0 + 30', 'signature: 5 + 20', 'mint: 30 + 100', 'block: 130 + 1000'];
const READ = [...ISSUED, 'reading: 1130 + 70'];
const FAILED = 'answered 500';

const CASES: Record<string, { token: TracedToken; stages: string[] }> = {
  'go from the request to each delivery, in the order of their begins': {
    token: tokenOf(
      issued(),
      recorded('minted', 1_200, to('default', [1_210, 8])),
      recorded('escrow_created', 1_200, to('default', [1_218, 7])),
    ),
    stages: [
      ...READ,
      'queue of minted to default: 1200 + 10',
      'queue of escrow_created to default: 1200 + 18',
      'delivery of minted to default: 1210 + 8',
      'delivery of escrow_created to default: 1218 + 7',
    ],
  },
  'have each failed and repeated attempt': {
    token: tokenOf(
      issued(),
      recorded('minted', 1_200, to('default', [1_210, 8, FAILED], [2_210, 9, FAILED], [4_210, 5])),
    ),
    stages: [
      ...READ,
      'queue of minted to default: 1200 + 10',
      `delivery of minted to default: 1210 + 8, ${FAILED}`,
      `delivery of minted to default: 2210 + 9, ${FAILED}`,
      'delivery of minted to default: 4210 + 5',
    ],
  },
  'end with the last attempt of a dead letter, and go on when it is sent again': {
    token: tokenOf(
      issued(),
      recorded('minted', 1_200, to('default', [1_210, 8, FAILED], [90_000, 4])),
      recorded('escrow_created', 1_200, to('default', [1_300, 8, FAILED])),
    ),
    stages: [
      ...READ,
      'queue of minted to default: 1200 + 10',
      'queue of escrow_created to default: 1200 + 100',
      `delivery of minted to default: 1210 + 8, ${FAILED}`,
      `delivery of escrow_created to default: 1300 + 8, ${FAILED}`,
      'delivery of minted to default: 90000 + 4',
    ],
  },
  'tell several subscriptions apart, one of which waits': {
    token: tokenOf(
      issued(),
      recorded('minted', 1_200, to('default', [1_210, 100]), to('other', [1_205, 1]), to('paused')),
    ),
    stages: [
      ...READ,
      'queue of minted to default: 1200 + 10',
      'queue of minted to other: 1200 + 5',
      'queue of minted to paused: 1200 + ?',
      'delivery of minted to other: 1205 + 1',
      'delivery of minted to default: 1210 + 100',
    ],
  },
  'are none of a token that was not issued here': {
    token: tokenOf(null, recorded('minted', 1_200, to('default', [1_210, 8]))),
    stages: [],
  },
  'are none of a document from before the times were kept': {
    token: tokenOf(
      issued({ receivedAt: null, signingAt: null, signedAt: null }),
      recorded('minted', 1_200, to('default', [1_210, 8])),
    ),
    stages: [],
  },
  'are those that are known': {
    token: tokenOf(issued({ signingAt: null, sentAt: null }), recorded('minted', 1_200)),
    stages: ['request: 0 + 30', 'mint: 30 + 1100', 'reading: 1130 + 70'],
  },
  'are those that the caller may see': {
    token: tokenOf(issued(), { type: 'minted', recordedAt: at(1_200) }),
    stages: READ,
  },
  'are under way while a document is minted': {
    token: tokenOf(issued({ sentAt: null, minedAt: null })),
    stages: [...ISSUED.slice(0, 2), 'mint: 30 + ?'],
  },
  'are under way while a mint is confirmed': {
    token: tokenOf(issued()),
    stages: [...ISSUED, 'reading: 1130 + ?'],
  },
  'end with a mint that failed': {
    token: tokenOf({
      ...issued({ sentAt: null, minedAt: null }),
      failure: { code: 'MINT_REVERTED', message: 'The registry is paused.' },
    }),
    stages: [...ISSUED.slice(0, 2), 'mint: 30 + ?, The registry is paused.'],
  },
  'are not those of a later operation, if the node does not know the mint': {
    token: {
      ...tokenOf(issued(), recorded('holder_transfer', 9_000, to('default', [9_010, 8]))),
      isWhole: false,
    },
    stages: [...ISSUED, 'reading: 1130 + ?'],
  },
  'overlap where the events are recorded before the mint queue sees the block': {
    token: tokenOf(issued(), recorded('minted', 1_100, to('default', [1_110, 300]))),
    stages: [
      ...ISSUED,
      'reading: 1100 + 0',
      'queue of minted to default: 1100 + 10',
      'delivery of minted to default: 1110 + 300',
    ],
  },
  'keep their order, and are never negative, if a clock was set back': {
    token: tokenOf(
      issued({ signedAt: -4_975, createdAt: -4_970, sentAt: -4_870, minedAt: -3_870 }),
      recorded('minted', -3_800, to('default', [-9_000, 8, FAILED], [-3_000, 8])),
    ),
    stages: [
      'request: 0 + 0',
      'signature: 5 + 0',
      'mint: -4970 + 100',
      'block: -4870 + 1000',
      'reading: -3870 + 70',
      'queue of minted to default: -3800 + 0',
      `delivery of minted to default: -3800 + 8, ${FAILED}`,
      'delivery of minted to default: -3000 + 8',
    ],
  },
};

describe('the stages of a document', () => {
  for (const [outcome, { token, stages }] of Object.entries(CASES))
    it(outcome, () => expect(timelineOf(token).map(briefly)).to.deep.equal(stages));
});

describe('the bars of stages', () => {
  for (const [outcome, stages, bars] of [
    ['none without stages', [], []],
    ['empty, of one without a duration', [[7, 0]], [[0, 0]]],
    [
      'parts of the whole, and to the end while under way',
      [
        [100, 50],
        [150, null],
        [175, 25],
      ],
      [
        [0, 0.5],
        [0.5, 1],
        [0.75, 1],
      ],
    ],
    [
      'within the whole, if a clock was set back',
      [
        [100, 0],
        [50, 10],
      ],
      [
        [1, 1],
        [0, 0.2],
      ],
    ],
  ] as [string, [number, number | null][], [number, number][]][])
    it(`are ${outcome}`, () => {
      const timeline = stages.map(([startedAt, milliseconds]) => ({ startedAt, milliseconds }));
      expect(waterfallOf(timeline).map(({ from, to: end }) => [from, end])).to.deep.equal(bars);
    });
});
