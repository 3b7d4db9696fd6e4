import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Lifecycle } from '../base/lifecycle';
import type { NodeReport } from '../chain/node-states';
import { CONDITION_KINDS, OPERATIONS, type ConditionKind } from '../events/conditions';
import { progressOf, type FollowedFeed } from '../watcher/feed-status';
import type { Snapshot } from './snapshot';

/** A gauge without a value is not in the text. The values of one label are added up. */
type Value = number | undefined;
type LabelledValues = readonly (readonly [label: string, value: Value])[];

const ofFeeds =
  (valueOf: (status: FollowedFeed['status'], now: number) => Value) =>
  ({ feeds, now }: Snapshot): LabelledValues =>
    feeds.map(({ name, status }) => [name, valueOf(status, now)]);

const ofOutboxes =
  (figure: 'waiting' | 'deadLetters' | 'orphaned') =>
  ({ outboxes = [] }: Snapshot): LabelledValues =>
    outboxes.map((one) => [one.registry, one[figure]]);

const ofUnfollowed =
  (wanted: ConditionKind, figure: string) =>
  ({ conditions = [] }: Snapshot): LabelledValues =>
    conditions
      .filter(({ what }) => what === wanted)
      .map(({ detail }) => [String(detail.registry), Number(detail[figure])]);

/** The states of all nodes of all feeds and of issuing, the worst of each first. */
const ofNodes =
  (valueOf: (node: NodeReport) => Value, worst: (...values: number[]) => number) =>
  ({ feeds, issuing }: Snapshot): LabelledValues => {
    const values = new Map<string, Value>();
    for (const node of [...feeds.flatMap(({ nodes }) => nodes?.() ?? []), ...(issuing?.nodes ?? [])]) {
      const [earlier, value] = [values.get(node.url), valueOf(node)];
      values.set(node.url, earlier === undefined || value === undefined ? value : worst(earlier, value));
    }
    return [...values];
  };

/** A figure that a service has one of. */
const ofAll =
  (valueOf: (snapshot: Snapshot) => Value) =>
  (snapshot: Snapshot): LabelledValues => [['', valueOf(snapshot)]];

const SIGNER_UP = { unknown: undefined, up: 1, failing: 0 };

/** Help and values of gauges, and of counters that others keep, by name. */
type Gauges = Readonly<Record<string, readonly [help: string, valuesOf: (s: Snapshot) => LabelledValues]>>;

/** The gauges by their label. Those without one are the last. */
const GAUGES: Readonly<Record<string, Gauges>> = {
  registry: {
    etr_feed_up: [
      '1: the chain is read, here or by another process. 0: it is not.',
      ofFeeds(({ state }) => (state === 'following' || state === 'standby' ? 1 : 0)),
    ],
    etr_feed_next_block: ['First block that has not been read.', ofFeeds(({ nextBlock }) => nextBlock)],
    etr_feed_head_block: [
      'Newest block of the chain when it was last asked.',
      ofFeeds(({ headBlock }) => headBlock),
    ],
    etr_feed_final_block: [
      'Highest final block when the chain was last asked. Blocks up to it are read.',
      ofFeeds(({ finalBlock }) => finalBlock),
    ],
    etr_feed_blocks_per_second: [
      'Blocks read a second in the last minute, while the feed is behind.',
      ofFeeds((status, now) => progressOf(status, now)?.blocksPerSecond),
    ],
    etr_feed_chain_blocks_per_second: [
      'Blocks that became final a second meanwhile. With more than are read, the feed never catches up.',
      ofFeeds((status, now) => progressOf(status, now)?.chainBlocksPerSecond),
    ],
    etr_deliveries_waiting: ['Events that are not delivered yet.', ofOutboxes('waiting')],
    etr_delivery_oldest_seconds: [
      'How long the event that waits longest could have been delivered; 0: none waits.',
      ({ outboxes = [], now }) =>
        outboxes.map(({ registry, oldestWaitingSince = now }) => [
          registry,
          Math.max(0, (now - oldestWaitingSince) / 1000),
        ]),
    ],
    etr_dead_letters: ['Events that were given up.', ofOutboxes('deadLetters')],
    etr_orphaned_delivered_events: [
      'Delivered events whose block was orphaned and whose transaction has not been mined again.',
      ofOutboxes('orphaned'),
    ],
    etr_unfollowed_deliveries: [
      'Events that are not delivered, of a registry that no setting follows.',
      ofUnfollowed('feed_unfollowed', 'undelivered'),
    ],
    etr_unfollowed_mints: [
      'Unfinished mints of a registry, or of an issuer, that no setting follows.',
      ofUnfollowed('documents_unfollowed', 'unfinished'),
    ],
  },
  state: {
    etr_subscriptions: [
      'Subscriptions by state: active, paused, gone (the sink answered 410).',
      ({ subscriptions }) => Object.entries(subscriptions ?? {}),
    ],
    etr_mints: [
      'Mints that are neither final nor failed: waiting, in flight (a node may have them), mined.',
      ({ issuing }) => [
        ['waiting', issuing?.mints?.waiting],
        ['in_flight', issuing?.mints?.inFlight],
        ['mined', issuing?.mints?.mined],
      ],
    ],
  },
  /** Only with several nodes. */
  node: {
    etr_node_up: [
      '1: the node answers. 0: it is away for a feed, or for issuing.',
      ofNodes(({ state }) => (state === 'up' ? 1 : 0), Math.min),
    ],
    etr_node_head_block: [
      'Newest block of the node when it was last asked.',
      ofNodes(({ headBlock }) => headBlock, Math.min),
    ],
    etr_node_differences_total: [
      'Answers of the node that differed from those of two others, since the start.',
      ofNodes(({ differences }) => differences, Math.max),
    ],
  },
  /** Only with remote signers. */
  key: {
    etr_signer_up: [
      '1: the remote signer of the key answers. 0: it fails, and what it signs waits.',
      ({ issuing }) => issuing?.signers.map(({ key, state }) => [key, SIGNER_UP[state]]) ?? [],
    ],
    etr_signer_wrong_answers_total: [
      'Answers of the signer that were not the signature asked for, since the start.',
      ({ issuing }) => issuing?.signers.map(({ key, wrongAnswers }) => [key, wrongAnswers]) ?? [],
    ],
  },
  what: {
    etr_conditions: [
      'Conditions that hold now, by their kind: what is wrong.',
      ({ conditions }) =>
        CONDITION_KINDS.map((kind) => [kind, conditions?.filter(({ what }) => what === kind).length]),
    ],
  },
  '': {
    etr_mint_oldest_seconds: [
      'Age of the oldest mint that is neither mined nor failed; 0: there is none.',
      ofAll(({ issuing }) => issuing?.mints && (issuing.mints.oldestSeconds ?? 0)),
    ],
    etr_signing_waiting: [
      'Documents that wait for a signing thread.',
      ofAll(({ issuing }) => issuing?.signing.waiting),
    ],
    etr_signing_busy: ['Threads that are signing.', ofAll(({ issuing }) => issuing?.signing.busy)],
    etr_wallet_balance_wei: [
      'Balance of the wallet that mints.',
      ofAll(({ issuing }) => issuing?.wallet && Number(issuing.wallet.balanceWei)),
    ],
    etr_wallet_mints_affordable: [
      'Mints that the wallet can pay for at current fees.',
      ofAll(({ issuing }) => issuing?.wallet?.mintsAffordable),
    ],
  },
};

/** Help and label of the counters of what happens. */
const COUNTERS = {
  etr_events_recorded_total: ['Registry events read from the chain and stored.', 'registry'],
  etr_mints_failed_total: ['Mints that failed in this process, by the code of their error.', 'code'],
  etr_mints_reorganised_total: ['Final mints whose blocks a reorganisation took.'],
  etr_contradictions_total: ['Tokens about which the journal and the watcher contradict each other.'],
} as const;

/** Makes the text of all metrics in the format of Prometheus. */
export type Metrics = (snapshot: Snapshot) => Promise<string>;

/** The usual metrics of a Node.js process. Each collection would measure the event loop anew. */
const OF_PROCESS = new Registry();
collectDefaultMetrics({ register: OF_PROCESS });

/** The upper bounds of buckets, in seconds: of answers, and of what waits for blocks. */
const FAST = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const SLOW = [0.01, 0.1, 0.5, 1, 2.5, 5, 15, 30, 60, 180, 600, 1_200, 3_600, 21_600];

/** Create it before anything that counts. */
export function createMetrics(lifecycle: Lifecycle): Metrics {
  const register = new Registry();
  const registers = [register];
  const counters = Object.fromEntries(
    Object.entries(COUNTERS).map(([name, [help, ...labelNames]]) => {
      return [name, new Counter({ name, help, labelNames, registers })];
    }),
  ) as Record<keyof typeof COUNTERS, Counter>;
  const histogram = <Of extends string>(name: string, help: string, buckets: number[], ...labelNames: Of[]) =>
    new Histogram({ name, help, labelNames, buckets, registers });
  const attempts = histogram(
    'etr_delivery_attempt_duration_seconds',
    'Attempts to deliver, by outcome: delivered, failed (will be retried), dead (given up).',
    FAST,
    'registry',
    'outcome',
  );
  const ages = histogram(
    'etr_block_to_delivery_seconds',
    'From block to delivery; of a retraction: from when it was told.',
    SLOW,
    'registry',
  );
  const stages = histogram('etr_create_stage_duration_seconds', 'Stages of POST /create.', SLOW, 'stage');
  const answers = histogram('etr_http_request_duration_seconds', 'Requests.', FAST, 'operation', 'status');
  // A series that began with its first failure would show no increase.
  for (const status of [200, 202, 500, 503]) answers.zero({ operation: 'POST /create/{documentId}', status });
  const measures = Object.entries(GAUGES).flatMap(([label, gauges]) =>
    Object.entries(gauges).map(([name, [help, valuesOf]]) => {
      const Kind = name.endsWith('_total') ? Counter : Gauge;
      const gauge = new Kind({ name, help, labelNames: label ? [label] : [], registers });
      return (snapshot: Snapshot): void => {
        // A gauge without a label would show 0 after a reset.
        if (label) gauge.reset();
        else gauge.remove();
        for (const [of, value] of valuesOf(snapshot))
          if (value !== undefined) gauge.inc(label ? { [label]: of } : {}, value);
      };
    }),
  );
  lifecycle.on('recorded', (registry, events) =>
    counters.etr_events_recorded_total.inc({ registry }, events),
  );
  lifecycle.on('attempted', (registry, outcome, ms, ageMs) => {
    attempts.observe({ registry, outcome }, ms / 1000);
    if (ageMs !== undefined && registry !== OPERATIONS) ages.observe({ registry }, Math.max(0, ageMs / 1000));
  });
  lifecycle.on('answered', (operation, status, ms) => answers.observe({ operation, status }, ms / 1000));
  lifecycle.on('stage ended', (stage, ms) => stages.observe({ stage }, ms / 1000));
  lifecycle.on('mint failed', (code) => counters.etr_mints_failed_total.inc({ code }));
  lifecycle.on('mints reorganised', (mints) => counters.etr_mints_reorganised_total.inc(mints));
  lifecycle.on('contradicted', () => counters.etr_contradictions_total.inc());
  return async (snapshot) => {
    for (const measure of measures) measure(snapshot);
    return (await register.metrics()) + (await OF_PROCESS.metrics());
  };
}
