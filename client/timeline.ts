import type { components } from './api-types';

type Schemas = components['schemas'];
type Endorsement = Schemas['Token']['endorsements'][number];
type Event = Endorsement['events'][number];
type Delivery = NonNullable<Event['deliveries']>[number];
/** The part of a token that its stages follow from. */
export interface TracedToken {
  issuing: Pick<
    NonNullable<Schemas['Token']['issuing']>,
    'receivedAt' | 'signingAt' | 'signedAt' | 'createdAt' | 'sentAt' | 'minedAt' | 'failure'
  > | null;
  isWhole: boolean;
  endorsements: readonly {
    events: readonly (Pick<Event, 'type' | 'recordedAt'> & {
      deliveries?: readonly Pick<Delivery, 'subscription' | 'eachAttempt'>[] | undefined;
    })[];
  }[];
}

/** A stage of a document that has begun. */
export interface Stage {
  stage: 'request' | 'signature' | 'mint' | 'block' | 'reading' | 'queue' | 'delivery';
  /** Epoch milliseconds. */
  startedAt: number;
  /** Null while it is under way, and for a mint that failed. */
  milliseconds: number | null;
  /** For `queue` and `delivery`: the event's type and the subscription. */
  event: string | null;
  subscription: string | null;
  /** Why the mint or an attempt of `delivery` failed. */
  error: string | null;
}

/**
 * The stages of a document from its request to its subscribers, from what `GET /tokens/{tokenId}` answers.
 * `mint` goes on until the transaction is signed, `block` until it is seen mined, and `reading` until its
 * events are recorded, after the confirmations. `queue` is the wait for the first attempt. Those up to
 * `reading` come in this order, however the clocks of processes differ; the others in the order of their
 * begins. Empty for a document that was not issued there, or before the times were kept.
 */
export function timelineOf({ issuing, isWhole, endorsements }: TracedToken): Stage[] {
  if (issuing === null || issuing.receivedAt === null) return [];
  const { receivedAt, signingAt, signedAt, createdAt, sentAt, minedAt, failure } = issuing;
  // Otherwise the first operation that is known is a later one.
  const events = (isWhole && endorsements[0]?.events) || [];
  const recordedAt = events[0]?.recordedAt ?? null;
  const issued = [
    stageOf('request', receivedAt, createdAt),
    stageOf('signature', signingAt, signedAt),
    stageOf('mint', createdAt, sentAt ?? minedAt, { error: failure?.message ?? null }),
    stageOf('block', sentAt, minedAt),
    // The reader may see the block first.
    stageOf('reading', minedAt && recordedAt && recordedAt < minedAt ? recordedAt : minedAt, recordedAt),
  ];
  const delivered = events.flatMap(({ type: event, recordedAt: queuedAt, deliveries = [] }) =>
    deliveries.flatMap(({ subscription, eachAttempt }) => [
      stageOf('queue', queuedAt, eachAttempt[0]?.attemptedAt ?? null, { event, subscription }),
      ...eachAttempt.map(({ attemptedAt, milliseconds, error }) => {
        const startedAt = attemptedAt < queuedAt ? queuedAt : attemptedAt;
        const endedAt = new Date(Date.parse(startedAt) + milliseconds).toISOString();
        return stageOf('delivery', startedAt, endedAt, { event, subscription, error });
      }),
    ]),
  );
  return [...issued.flat(), ...delivered.flat().sort((left, right) => left.startedAt - right.startedAt)];
}

/** A stage, or none if it has not begun or its begin is not known. */
function stageOf(
  stage: Stage['stage'],
  from: string | null,
  to: string | null,
  about: Partial<Pick<Stage, 'event' | 'subscription' | 'error'>> = {},
): Stage[] {
  if (from === null) return [];
  const startedAt = Date.parse(from);
  // The clocks of two processes may differ, and a clock may be set back.
  const milliseconds = to === null ? null : Math.max(Date.parse(to) - startedAt, 0);
  return [{ stage, startedAt, milliseconds, event: null, subscription: null, error: null, ...about }];
}

/** A bar of a waterfall, in parts of the whole from 0 to 1. */
export interface Bar {
  from: number;
  to: number;
}

/** The bars of a timeline's stages. A stage that is under way reaches to the end. */
export function waterfallOf(timeline: readonly Pick<Stage, 'startedAt' | 'milliseconds'>[]): Bar[] {
  const first = Math.min(...timeline.map(({ startedAt }) => startedAt));
  const last = Math.max(...timeline.map(({ startedAt, milliseconds }) => startedAt + (milliseconds ?? 0)));
  const whole = Math.max(last - first, 1);
  return timeline.map(({ startedAt, milliseconds }) => ({
    from: (startedAt - first) / whole,
    to: milliseconds === null ? 1 : (startedAt + milliseconds - first) / whole,
  }));
}
