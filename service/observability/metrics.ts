import { Counter, Gauge, Registry } from 'prom-client';
import { registryName, type RegistryName } from '../base/registry-name';
import type { OutboxFigures } from '../outbox/outbox-figures';
import type { ReportedFeed } from './health';
import type { IssuingReport } from './issuing-report';
import type { SubscriptionsHealth } from '../subscriptions/subscription-health';
import type { Unfollowed } from './unfollowed';

/** Counters and gauges in Prometheus' text format. Create it before anything that counts. */
export interface Metrics {
  recorded(registry: RegistryName, events: number): void;
  attempted(registry: RegistryName, outcome: 'delivered' | 'failed' | 'dead'): void;
  mintFailed(code: string): void;
  mintsReorganised(mints: number): void;
  contradicted(): void;
  contentType: string;
  /** The text, with the measured values. */
  text(measured: Measured): Promise<string>;
}

/** Values that are measured for each request of the metrics. */
export interface Measured {
  feeds: readonly ReportedFeed[];
  /** Empty while the database cannot be asked, so that no outdated figures are shown. */
  outboxes: readonly ({ registry: RegistryName } & OutboxFigures)[];
  /** Undefined while documents cannot be issued. */
  issuing: IssuingReport | undefined;
  /** Undefined while the database cannot be asked. */
  unfollowed: Unfollowed | undefined;
  /** Undefined while the database cannot be asked. */
  subscriptions?: SubscriptionsHealth | undefined;
}

/** Creates the metrics of one service. */
export function createMetrics(): Metrics {
  const register = new Registry();
  const eventDelivery = eventDeliveryMetrics(register);
  const issuing = issuingMetrics(register);
  const measureSubscriptions = subscriptionMetrics(register);
  return {
    ...eventDelivery.counters,
    ...issuing.counters,
    contentType: register.contentType,
    async text(measured) {
      eventDelivery.measure(measured);
      issuing.measure(measured.issuing);
      measureSubscriptions(measured.subscriptions);
      return register.metrics();
    },
  };
}

/** A part of the metrics: its counters, and the gauges that are set before the text is created. */
interface MetricsPart<Counters extends keyof Metrics, What> {
  counters: Pick<Metrics, Counters>;
  measure(what: What): void;
}

function eventDeliveryMetrics(
  register: Registry,
): MetricsPart<'recorded' | 'attempted', Omit<Measured, 'issuing' | 'subscriptions'>> {
  const registers = [register];
  const labelNames = ['registry'] as const;
  const recorded = new Counter({
    name: 'etr_events_recorded_total',
    help: 'Registry events read from the chain and stored.',
    labelNames,
    registers,
  });
  const attempts = new Counter({
    name: 'etr_delivery_attempts_total',
    help: 'Attempts to deliver, by outcome: delivered, failed (will be retried), dead (given up).',
    labelNames: [...labelNames, 'outcome'] as const,
    registers,
  });
  const gauge = (name: string, help: string): Gauge<'registry'> =>
    new Gauge({ name, help, labelNames, registers });
  const up = gauge('etr_feed_up', '1: the chain is read, here or by another process. 0: it is not.');
  const nextBlock = gauge('etr_feed_next_block', 'First block that has not been read.');
  const headBlock = gauge('etr_feed_head_block', 'Newest block of the chain when it was last asked.');
  const waiting = gauge('etr_deliveries_waiting', 'Events that are not delivered yet.');
  const dead = gauge('etr_dead_letters', 'Events that were given up.');
  const orphaned = gauge(
    'etr_orphaned_delivered_events',
    'Delivered events whose block was orphaned and whose transaction has not been mined again.',
  );
  const unfollowedDeliveries = gauge(
    'etr_unfollowed_deliveries',
    'Events that are not delivered, of a registry that no setting follows.',
  );
  const unfollowedMints = gauge(
    'etr_unfollowed_mints',
    'Unfinished mints of a registry, or of an issuer, that no setting follows.',
  );
  return {
    counters: {
      recorded: (registry, events) => recorded.inc({ registry }, events),
      attempted: (registry, outcome) => attempts.inc({ registry, outcome }),
    },
    measure({ feeds, outboxes, unfollowed }) {
      for (const one of [
        up,
        nextBlock,
        headBlock,
        waiting,
        dead,
        orphaned,
        unfollowedDeliveries,
        unfollowedMints,
      ])
        one.reset();
      for (const { chainId, registry: address, status } of feeds) {
        const registry = registryName(chainId, address);
        up.set({ registry }, status.state === 'following' || status.state === 'standby' ? 1 : 0);
        if (status.nextBlock !== undefined) nextBlock.set({ registry }, status.nextBlock);
        if (status.headBlock !== undefined) headBlock.set({ registry }, status.headBlock);
      }
      for (const { registry, ...figure } of outboxes) {
        waiting.set({ registry }, figure.waiting);
        dead.set({ registry }, figure.deadLetters);
        orphaned.set({ registry }, figure.orphaned);
      }
      for (const { registry, undelivered } of unfollowed?.deliveries ?? [])
        unfollowedDeliveries.set({ registry }, undelivered);
      for (const { registry, unfinished } of unfollowed?.issuances ?? [])
        unfollowedMints.inc({ registry }, unfinished);
    },
  };
}

function subscriptionMetrics(register: Registry): (measured: SubscriptionsHealth | undefined) => void {
  const registers = [register];
  const subscriptions = new Gauge({
    name: 'etr_subscriptions',
    help: 'Subscriptions by state: active, paused, gone (the sink answered 410).',
    labelNames: ['state'] as const,
    registers,
  });
  const failing = new Gauge({
    name: 'etr_subscriptions_failing',
    help: 'Active subscriptions without a successful delivery for SUBSCRIPTION_FAILING_AFTER_MINUTES.',
    registers,
  });
  return (measured) => {
    subscriptions.reset();
    for (const state of ['active', 'paused', 'gone'] as const)
      if (measured) subscriptions.set({ state }, measured.byState[state]);
    const count = measured?.troubled.filter(({ failingSince }) => failingSince !== undefined).length;
    setOrRemove(failing, count);
  };
}

function issuingMetrics(
  register: Registry,
): MetricsPart<'mintFailed' | 'mintsReorganised' | 'contradicted', IssuingReport | undefined> {
  const registers = [register];
  const failed = new Counter({
    name: 'etr_mints_failed_total',
    help: 'Mints that failed in this process, by the code of their error.',
    labelNames: ['code'] as const,
    registers,
  });
  const reorganised = new Counter({
    name: 'etr_mints_reorganised_total',
    help: 'Final mints whose blocks a reorganisation deeper than CONFIRMATIONS took.',
    registers,
  });
  const contradictions = new Counter({
    name: 'etr_contradictions_total',
    help: 'Tokens about which the journal and the watcher contradict each other.',
    registers,
  });
  const mints = new Gauge({
    name: 'etr_mints',
    help: 'Mints that are neither final nor failed: waiting, in flight (a node may have them), mined.',
    labelNames: ['state'] as const,
    registers,
  });
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
  const oldest = gauge(
    'etr_mint_oldest_seconds',
    'Age of the oldest mint that is neither mined nor failed; 0: there is none.',
  );
  const waiting = gauge('etr_signing_waiting', 'Documents that wait for a signing thread.');
  const busy = gauge('etr_signing_busy', 'Threads that are signing.');
  const balance = gauge('etr_wallet_balance_wei', 'Balance of the wallet that mints.');
  const affordable = gauge(
    'etr_wallet_mints_affordable',
    'Mints that the wallet can pay for at current fees.',
  );
  return {
    counters: {
      mintFailed: (code) => failed.inc({ code }),
      mintsReorganised: (count) => reorganised.inc(count),
      contradicted: () => contradictions.inc(),
    },
    measure(issuing) {
      mints.reset();
      const figures = issuing?.mints;
      if (figures) {
        mints.set({ state: 'waiting' }, figures.waiting);
        mints.set({ state: 'in_flight' }, figures.inFlight);
        mints.set({ state: 'mined' }, figures.mined);
      }
      setOrRemove(oldest, figures && (figures.oldestSeconds ?? 0));
      setOrRemove(waiting, issuing?.signing.waiting);
      setOrRemove(busy, issuing?.signing.busy);
      setOrRemove(balance, issuing?.wallet && Number(issuing.wallet.balanceWei));
      setOrRemove(affordable, issuing?.wallet?.mintsAffordable);
    },
  };
}

/** Sets the gauge, or removes it if the value is unknown: otherwise a gauge without labels would show 0. */
function setOrRemove(gauge: Gauge, value: number | undefined): void {
  if (value === undefined) gauge.remove();
  else gauge.set(value);
}
