import { Counter, Gauge, Registry } from 'prom-client';
import type { Lifecycle } from '../base/lifecycle';
import type { NodeReport } from '../chain/node-states';
import type { ConditionKind } from '../events/conditions';
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

/** Help and values of gauges, by name. */
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
    etr_node_differences: [
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
    etr_signer_wrong_answers: [
      'Answers of the signer that were not the signature asked for, since the start.',
      ({ issuing }) => issuing?.signers.map(({ key, wrongAnswers }) => [key, wrongAnswers]) ?? [],
    ],
  },
  what: {
    etr_conditions: [
      'Conditions that hold now, by their kind: what is wrong.',
      ({ conditions = [] }) => conditions.map(({ what }) => [what, 1]),
    ],
  },
  '': {
    etr_subscriptions_failing: [
      'Active subscriptions without a successful delivery for SUBSCRIPTION_FAILING_AFTER_MINUTES.',
      ofAll(({ conditions }) => conditions?.filter(({ what }) => what === 'subscription_failing').length),
    ],
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

/** Counters and gauges in Prometheus' text format. */
export interface Metrics {
  readonly contentType: string;
  text(this: void, snapshot: Snapshot): Promise<string>;
}

/** Create it before anything that counts. */
export function createMetrics(lifecycle: Lifecycle): Metrics {
  const register = new Registry();
  const registers = [register];
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> =>
    new Counter({ name, help, labelNames, registers });
  const recorded = counter('etr_events_recorded_total', 'Registry events read from the chain and stored.', [
    'registry',
  ]);
  const attempts = counter(
    'etr_delivery_attempts_total',
    'Attempts to deliver, by outcome: delivered, failed (will be retried), dead (given up).',
    ['registry', 'outcome'],
  );
  const failed = counter(
    'etr_mints_failed_total',
    'Mints that failed in this process, by the code of their error.',
    ['code'],
  );
  const reorganised = counter(
    'etr_mints_reorganised_total',
    'Final mints whose blocks a reorganisation took.',
    [],
  );
  const contradictions = counter(
    'etr_contradictions_total',
    'Tokens about which the journal and the watcher contradict each other.',
    [],
  );
  const measures = Object.entries(GAUGES).flatMap(([label, gauges]) =>
    Object.entries(gauges).map(([name, [help, valuesOf]]) => {
      const gauge = new Gauge({ name, help, labelNames: label ? [label] : [], registers });
      return (snapshot: Snapshot): void => {
        // A gauge without a label would show 0 after a reset.
        if (label) gauge.reset();
        else gauge.remove();
        for (const [of, value] of valuesOf(snapshot))
          if (value !== undefined) gauge.inc(label ? { [label]: of } : {}, value);
      };
    }),
  );
  lifecycle.on('recorded', (registry, events) => recorded.inc({ registry }, events));
  lifecycle.on('attempted', (registry, outcome) => attempts.inc({ registry, outcome }));
  lifecycle.on('mint failed', (code) => failed.inc({ code }));
  lifecycle.on('mints reorganised', (mints) => reorganised.inc(mints));
  lifecycle.on('contradicted', () => contradictions.inc());
  return {
    contentType: register.contentType,
    async text(snapshot) {
      for (const measure of measures) measure(snapshot);
      return register.metrics();
    },
  };
}
