import type { components } from './api-types';

type Schemas = components['schemas'];
type Endorsement = Schemas['Token']['endorsements'][number];
type Event = Endorsement['events'][number];
/** The part of a token that its stages follow from. */
interface Token {
  issuing: Schemas['Token']['issuing'];
  endorsements: readonly {
    events: readonly (Pick<Event, 'type' | 'recordedAt'> & {
      deliveries?: Event['deliveries'] | undefined;
    })[];
  }[];
}

/** A stage of a document that has begun. */
export interface Stage {
  stage: 'request' | 'signature' | 'mint' | 'block' | 'reading' | 'queue' | 'delivery';
  /** Epoch milliseconds. */
  startedAt: number;
  /** Null while it is under way. */
  milliseconds: number | null;
  /** For `queue` and `delivery`: the event's type and the subscription. */
  event: string | null;
  subscription: string | null;
  /** Why an attempt of `delivery` failed. */
  error: string | null;
}

/**
 * The stages of a document from its request to its subscribers, in the order of their begins, from what
 * `GET /tokens/{tokenId}` answers. `mint` goes on until the transaction is signed, `block` until it is seen
 * mined, and `reading` until its events are recorded, after the confirmations. `queue` is the wait for the
 * first attempt. Empty for a document that was not issued there, or before the times were kept.
 */
export function timelineOf({ issuing, endorsements: [mint] }: Token): Stage[] {
  if (issuing === null || issuing.receivedAt === null) return [];
  const stages: Stage[] = [];
  const add = (
    stage: Stage['stage'],
    from: string | null,
    to: string | null,
    about: Partial<Pick<Stage, 'event' | 'subscription' | 'error'>> = {},
  ): void => {
    if (from === null) return;
    const startedAt = Date.parse(from);
    // The clocks of two processes may differ.
    const milliseconds = to === null ? null : Math.max(Date.parse(to) - startedAt, 0);
    stages.push({ stage, startedAt, milliseconds, event: null, subscription: null, error: null, ...about });
  };
  const { receivedAt, signingAt, signedAt, createdAt, sentAt, minedAt } = issuing;
  const events = mint?.events ?? [];
  const recordedAt = events[0]?.recordedAt ?? null;
  add('request', receivedAt, createdAt);
  add('signature', signingAt, signedAt);
  add('mint', createdAt, sentAt ?? minedAt);
  add('block', sentAt, minedAt);
  // The reader may see the block first.
  add('reading', minedAt && recordedAt && recordedAt < minedAt ? recordedAt : minedAt, recordedAt);
  for (const { type: event, recordedAt: queuedAt, deliveries = [] } of events)
    for (const { subscription, eachAttempt } of deliveries) {
      add('queue', queuedAt, eachAttempt[0]?.attemptedAt ?? null, { event, subscription });
      for (const { attemptedAt, milliseconds, error } of eachAttempt) {
        const endedAt = new Date(Date.parse(attemptedAt) + milliseconds).toISOString();
        add('delivery', attemptedAt, endedAt, { event, subscription, error });
      }
    }
  return stages.sort((left, right) => left.startedAt - right.startedAt);
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
