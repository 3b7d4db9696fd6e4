import pino from 'pino';
import { createLifecycle } from '../../../service/base/lifecycle';
import { systemTime } from '../../../service/base/time';
import { realisedOptions } from '../../../service/base/delivery-options';
import type { Database } from '../../../service/database/database';
import { createDeliverySlots } from '../../../service/delivery/delivery-slots';
import type { WebhookClient } from '../../../service/delivery/attempt-delivery';
import { owned } from '../resources';
import {
  startDeliveryWorker,
  type DeliveryWorker,
  type DeliveryWorkerOptions,
} from '../../../service/delivery/worker';

/** Starts the worker of a channel whose requests are answered by `post`, with a status. */
export function startWorker(
  database: Database,
  channel: number,
  post: (body: string) => number | Promise<number>,
  {
    time = systemTime,
    ...options
  }: Partial<
    Pick<DeliveryWorkerOptions, 'time' | 'maxConcurrentDeliveries' | 'retry' | 'share' | 'client' | 'slots'>
  > = {},
): DeliveryWorker & AsyncDisposable {
  const logger = pino({ level: 'silent' });
  const worker = startDeliveryWorker({
    database,
    channel,
    sentTo: { changedAt: 1, sinkHash: 'a sink' },
    client: clientOf(post),
    ...realisedOptions({}),
    timeoutMs: 1_000,
    maxConcurrentDeliveries: 2,
    share: () => Infinity,
    slots: createDeliverySlots({ most: 1_000, time, logger }).newShare(false),
    ...options,
    time,
    random: () => 0,
    logger,
    lifecycle: createLifecycle(),
    registry: 'operations',
  });
  return owned(`delivery worker of channel ${channel}`, worker, 'stop');
}

/** A webhook client whose requests are answered by `post`, with a status. */
export function clientOf(post: (body: string) => number | Promise<number>): WebhookClient {
  return {
    server: { 'server.address': 'localhost', 'server.port': 80 },
    post: async (body) => ({ status: await post(body), retryAfter: undefined }),
    abort: () => undefined,
    close: async () => undefined,
  };
}
