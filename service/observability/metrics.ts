import { Counter, Gauge, Registry } from 'prom-client';
import type { Lifecycle } from '../base/lifecycle';
import { registryName, type RegistryName } from '../base/registry-name';
import type { NodeReport } from '../chain/node-states';
import type { ConditionKind } from '../events/conditions';
import type { OutboxFigures } from '../outbox/outbox-figures';
import type { SeenCondition } from '../outbox/conditions';
import type { SubscriptionState } from '../subscriptions/subscription';
import { progressOf, type FollowedFeed } from '../watcher/feed-status';
import type { IssuingReport } from './issuing-report';

/** Values that are measured for each request of the metrics. */
export interface Measured {
  feeds: readonly FollowedFeed[];
  /** Undefined while the database cannot be asked, as the members below: no outdated figures are shown. */
  outboxes: readonly ({ registry: RegistryName } & OutboxFigures)[] | undefined;
  conditions: readonly SeenCondition[] | undefined;
  /** The number of subscriptions by state. */
  subscriptions: Readonly<Record<SubscriptionState, number>> | undefined;
  /** Epoch milliseconds. */
  now: number;
  /** Undefined while documents cannot be issued. */
  issuing: IssuingReport | undefined;
}

/** A gauge without a value is not in the text. The values of one label are added up. */
type Value = number | undefined;
type LabelledValues = readonly (readonly [label: string, value: Value])[];

const ofFeeds =
  (valueOf: (status: FollowedFeed['status'], now: number) => Value) =>
  ({ feeds, now }: Measured): LabelledValues =>
    feeds.map(({ chainId, registry, status }) => [registryName(chainId, registry), valueOf(status, now)]);

const ofOutboxes =
  (figure: keyof OutboxFigures) =>
  ({ outboxes = [] }: Measured): LabelledValues =>
    outboxes.map((one) => [one.registry, one[figure]]);

const ofUnfollowed =
  (wanted: ConditionKind, figure: string) =>
  ({ conditions = [] }: Measured): LabelledValues =>
    conditions
      .filter(({ what }) => what === wanted)
      .map(({ detail }) => [String(detail.registry), Number(detail[figure])]);

/** Name, help and values of a gauge with a label. */
type Labelled = readonly [string, string, (measured: Measured) => LabelledValues];

const BY_REGISTRY: readonly Labelled[] = [
  [
    'etr_feed_up',
    '1: the chain is read, here or by another process. 0: it is not.',
    ofFeeds(({ state }) => (state === 'following' || state === 'standby' ? 1 : 0)),
  ],
  ['etr_feed_next_block', 'First block that has not been read.', ofFeeds(({ nextBlock }) => nextBlock)],
  [
    'etr_feed_head_block',
    'Newest block of the chain when it was last asked.',
    ofFeeds(({ headBlock }) => headBlock),
  ],
  [
    'etr_feed_final_block',
    'Highest final block when the chain was last asked. Blocks up to it are read.',
    ofFeeds(({ finalBlock }) => finalBlock),
  ],
  [
    'etr_feed_blocks_per_second',
    'Blocks read a second in the last minute, while the feed is behind.',
    ofFeeds((status, now) => progressOf(status, now)?.blocksPerSecond),
  ],
  [
    'etr_feed_chain_blocks_per_second',
    'Blocks that became final a second meanwhile. With more than are read, the feed never catches up.',
    ofFeeds((status, now) => progressOf(status, now)?.chainBlocksPerSecond),
  ],
  ['etr_deliveries_waiting', 'Events that are not delivered yet.', ofOutboxes('waiting')],
  ['etr_dead_letters', 'Events that were given up.', ofOutboxes('deadLetters')],
  [
    'etr_orphaned_delivered_events',
    'Delivered events whose block was orphaned and whose transaction has not been mined again.',
    ofOutboxes('orphaned'),
  ],
  [
    'etr_unfollowed_deliveries',
    'Events that are not delivered, of a registry that no setting follows.',
    ofUnfollowed('feed_unfollowed', 'undelivered'),
  ],
  [
    'etr_unfollowed_mints',
    'Unfinished mints of a registry, or of an issuer, that no setting follows.',
    ofUnfollowed('documents_unfollowed', 'unfinished'),
  ],
];

/** The states of all nodes of all feeds and of issuing, the worst of each first. */
const ofNodes =
  (valueOf: (node: NodeReport) => Value, worst: (...values: number[]) => number) =>
  ({ feeds, issuing }: Measured): LabelledValues => {
    const values = new Map<string, Value>();
    for (const node of [...feeds.flatMap(({ nodes }) => nodes?.() ?? []), ...(issuing?.nodes ?? [])]) {
      const [earlier, value] = [values.get(node.url), valueOf(node)];
      values.set(node.url, earlier === undefined || value === undefined ? value : worst(earlier, value));
    }
    return [...values];
  };

/** Only with several nodes. */
const BY_NODE: readonly Labelled[] = [
  [
    'etr_node_up',
    '1: the node answers. 0: it is away for a feed, or for issuing.',
    ofNodes(({ state }) => (state === 'up' ? 1 : 0), Math.min),
  ],
  [
    'etr_node_head_block',
    'Newest block of the node when it was last asked.',
    ofNodes(({ headBlock }) => headBlock, Math.min),
  ],
  [
    'etr_node_differences',
    'Answers of the node that differed from those of two others, since the start.',
    ofNodes(({ differences }) => differences, Math.max),
  ],
];

const BY_STATE: readonly Labelled[] = [
  [
    'etr_subscriptions',
    'Subscriptions by state: active, paused, gone (the sink answered 410).',
    ({ subscriptions }) => Object.entries(subscriptions ?? {}),
  ],
  [
    'etr_mints',
    'Mints that are neither final nor failed: waiting, in flight (a node may have them), mined.',
    ({ issuing }) => [
      ['waiting', issuing?.mints?.waiting],
      ['in_flight', issuing?.mints?.inFlight],
      ['mined', issuing?.mints?.mined],
    ],
  ],
];

const CONDITIONS: Labelled = [
  'etr_conditions',
  'Conditions that hold now, by their kind: what is wrong.',
  ({ conditions = [] }) => conditions.map(({ what }) => [what, 1]),
];

const SIGNER_UP = { unknown: undefined, up: 1, failing: 0 };

/** Only with remote signers. */
const BY_KEY: readonly Labelled[] = [
  [
    'etr_signer_up',
    '1: the remote signer of the key answers. 0: it fails, and what it signs waits.',
    ({ issuing }) => issuing?.signers.map(({ key, state }) => [key, SIGNER_UP[state]]) ?? [],
  ],
  [
    'etr_signer_wrong_answers',
    'Answers of the signer that were not the signature asked for, since the start.',
    ({ issuing }) => issuing?.signers.map(({ key, wrongAnswers }) => [key, wrongAnswers]) ?? [],
  ],
];

/** Name, help and value of gauges without a label. */
const SINGLE: readonly [string, string, (measured: Measured) => Value][] = [
  [
    'etr_subscriptions_failing',
    'Active subscriptions without a successful delivery for SUBSCRIPTION_FAILING_AFTER_MINUTES.',
    ({ conditions }) => conditions?.filter(({ what }) => what === 'subscription_failing').length,
  ],
  [
    'etr_mint_oldest_seconds',
    'Age of the oldest mint that is neither mined nor failed; 0: there is none.',
    ({ issuing }) => issuing?.mints && (issuing.mints.oldestSeconds ?? 0),
  ],
  [
    'etr_signing_waiting',
    'Documents that wait for a signing thread.',
    ({ issuing }) => issuing?.signing.waiting,
  ],
  ['etr_signing_busy', 'Threads that are signing.', ({ issuing }) => issuing?.signing.busy],
  [
    'etr_wallet_balance_wei',
    'Balance of the wallet that mints.',
    ({ issuing }) => issuing?.wallet && Number(issuing.wallet.balanceWei),
  ],
  [
    'etr_wallet_mints_affordable',
    'Mints that the wallet can pay for at current fees.',
    ({ issuing }) => issuing?.wallet?.mintsAffordable,
  ],
];

/** Counters and gauges in Prometheus' text format. */
export type Metrics = ReturnType<typeof createMetrics>;

/** Create it before anything that counts. */
export function createMetrics(lifecycle: Lifecycle) {
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
  const labelledBy =
    (label: 'registry' | 'state' | 'node' | 'key' | 'what') =>
    ([name, help, valuesOf]: Labelled) => {
      const gauge = new Gauge({ name, help, labelNames: [label], registers });
      return (measured: Measured): void => {
        gauge.reset();
        for (const [of, value] of valuesOf(measured))
          if (value !== undefined) gauge.inc({ [label]: of }, value);
      };
    };
  const single = SINGLE.map(([name, help, valueOf]) => {
    const gauge = new Gauge({ name, help, registers });
    return (measured: Measured): void => {
      const value = valueOf(measured);
      // A gauge without labels would show 0 after a reset.
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    };
  });
  const measures = [
    ...BY_REGISTRY.map(labelledBy('registry')),
    ...BY_STATE.map(labelledBy('state')),
    ...BY_NODE.map(labelledBy('node')),
    ...BY_KEY.map(labelledBy('key')),
    labelledBy('what')(CONDITIONS),
    ...single,
  ];
  lifecycle.on('recorded', (registry, events) => recorded.inc({ registry }, events));
  lifecycle.on('attempted', (registry, outcome) => attempts.inc({ registry, outcome }));
  lifecycle.on('mint failed', (code) => failed.inc({ code }));
  lifecycle.on('mints reorganised', (mints) => reorganised.inc(mints));
  lifecycle.on('contradicted', () => contradictions.inc());
  return {
    contentType: register.contentType,
    /** The text, with the measured values. */
    async text(measured: Measured): Promise<string> {
      for (const measure of measures) measure(measured);
      return register.metrics();
    },
  };
}
