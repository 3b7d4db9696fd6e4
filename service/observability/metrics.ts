import { Counter, Gauge, Registry } from 'prom-client';
import type { OutboxFigures } from '../outbox/outbox-figures';
import type { ReportedFeed } from './health';

/** What is counted and measured, in Prometheus' text format. It is made before anything starts that counts. */
export interface Metrics {
  recorded(registry: string, events: number): void;
  attempted(registry: string, outcome: 'delivered' | 'failed' | 'dead'): void;
  contentType: string;
  /** The text, with what was measured for it. */
  text(measured: Measured): Promise<string>;
}

/** What is measured when it is asked for. */
export interface Measured {
  feeds: readonly ReportedFeed[];
  /** Empty while the database cannot be asked: figures are missing then, not old. */
  outboxes: readonly ({ registry: string } & OutboxFigures)[];
}

/** Creates the metrics of one service. */
export function createMetrics(): Metrics {
  const registers = [new Registry()] as const;
  const [register] = registers;
  const labelNames = ['registry'] as const;
  const recorded = new Counter({
    name: 'etr_events_recorded_total',
    help: 'Registry events read from the chain and stored.',
    labelNames,
    registers: [...registers],
  });
  const attempts = new Counter({
    name: 'etr_delivery_attempts_total',
    help: 'Attempts to deliver, by outcome: delivered, failed (is tried again), dead (given up).',
    labelNames: [...labelNames, 'outcome'] as const,
    registers: [...registers],
  });
  const gauge = (name: string, help: string): Gauge<'registry'> =>
    new Gauge({ name, help, labelNames, registers: [...registers] });
  const up = gauge('etr_feed_up', '1: the chain is read, here or by another process. 0: it is not.');
  const nextBlock = gauge('etr_feed_next_block', 'First block that has not been read.');
  const headBlock = gauge('etr_feed_head_block', 'Newest block of the chain when it was last asked.');
  const waiting = gauge('etr_deliveries_waiting', 'Events that are not delivered yet.');
  const dead = gauge('etr_dead_letters', 'Events that were given up.');
  const orphaned = gauge(
    'etr_orphaned_delivered_events',
    'Delivered events whose block was orphaned and whose transaction has not been mined again.',
  );
  return {
    recorded: (registry, events) => recorded.inc({ registry }, events),
    attempted: (registry, outcome) => attempts.inc({ registry, outcome }),
    contentType: register.contentType,
    async text({ feeds, outboxes }) {
      for (const { chainId, registry: address, status } of feeds) {
        const registry = `${chainId}:${address}`;
        up.set({ registry }, status.state === 'following' || status.state === 'standby' ? 1 : 0);
        if (status.nextBlock !== undefined) nextBlock.set({ registry }, status.nextBlock);
        if (status.headBlock !== undefined) headBlock.set({ registry }, status.headBlock);
      }
      for (const one of [waiting, dead, orphaned]) one.reset();
      for (const { registry, ...figure } of outboxes) {
        waiting.set({ registry }, figure.waiting);
        dead.set({ registry }, figure.deadLetters);
        orphaned.set({ registry }, figure.orphaned);
      }
      return register.metrics();
    },
  };
}
