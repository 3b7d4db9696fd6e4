import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { SigningKeys } from '../base/signing-keys';
import type { SinkRules } from '../base/sink-rules';
import type { ChannelTarget } from '../delivery/feed-delivery';
import type { StoredSubscription } from './present-subscription';

/** The parts of the service that deliveries of a subscription need. */
export interface TargetOptions {
  readonly signingKeys: SigningKeys;
  readonly rules: SinkRules;
  /** Replaced in tests. */
  readonly lookup?: LookupFunction;
}

/** The webhook that a subscription's events are delivered to. */
export function targetOf(
  { sink, protocolsettings, config }: StoredSubscription,
  { signingKeys, rules, lookup: lookUp = lookup }: TargetOptions,
): ChannelTarget {
  const { timeoutMs, maxConcurrentDeliveries, retry, contentType, secret } = config;
  return {
    url: sink,
    headers: protocolsettings?.headers ?? {},
    timeoutMs,
    maxConcurrentDeliveries,
    retry,
    contentType,
    signingKeys,
    guard: { rules, lookup: lookUp },
    ...(config.standardWebhooks && secret !== undefined && { standardWebhooks: { secret } }),
  };
}
