import { registryName } from '../service/base/registry-name';
import { systemClock } from '../service/base/clock';
import type { Config } from '../service/config/config';
import { LONGEST_RETENTION_DAYS } from '../service/config/settings';
import type { Answer } from './answer';
import { ConfigurationError } from '../service/base/errors';
import { overBefore } from '../service/composition/retention';
import { invalid, registryOf } from './deliveries/show-deliveries';
import { confirm } from './terminal/dialog';
import { printableJson } from './terminal/printable';

/**
 * The registry of `--registry`, or else TOKEN_REGISTRY_ADDRESS. Other tenants may share the database; their
 * registries must be named.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NOT_CONFIGURED.
 */
export function registryToPurge(
  named: string | undefined,
  { network, tokenRegistryAddress }: Config,
): string {
  const registry = registryOf(named);
  if (registry !== undefined) return registry;
  if (tokenRegistryAddress !== undefined) return registryName(network.chainId, tokenRegistryAddress);
  const remedy = 'Set TOKEN_REGISTRY_ADDRESS, or give --registry.';
  throw new ConfigurationError('NOT_CONFIGURED', `No registry is set. ${remedy}`, { remedy });
}

/**
 * Epoch milliseconds of the moment `days` days ago.
 *
 * @throws ConfigurationError ARGUMENT_INVALID.
 */
export function timeOfOlderThan(days: number): number {
  if (days < 0 || days > LONGEST_RETENTION_DAYS)
    throw invalid(`--older-than takes 0 to ${LONGEST_RETENTION_DAYS} days.`);
  return overBefore(days, systemClock.now());
}

/** @throws Refusal CONFIRMATION_MISSING. */
export async function agreeToPurge(isAgreed: boolean): Promise<void> {
  await confirm('purge', isAgreed, undefined, 'Nothing was removed');
}

/** The answer after a purge. `before`: epoch milliseconds. */
export function purged(removed: number, before: number): Answer {
  return {
    lines: [removed === 0 ? 'nothing to remove' : `${removed} removed`],
    json: printableJson({ removed, before: new Date(before).toISOString() }),
    isYes: true,
  };
}
