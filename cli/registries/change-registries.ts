import { findNetwork } from '../../service/chain/networks';
import { parseRegistry, type RequestedRegistry } from '../../service/followed-registries/parse-registry';
import type { Answer } from '../answer';
import { Refusal } from '../errors';
import { printableJson } from '../terminal/printable';
import { registryOf } from '../token/find-token';
import { withoutStatus } from './list-registries';
import { withRegistries } from './with-registries';

/** Names a registry. `network` defaults to NET. */
export interface NamedRegistry {
  registry: string;
  network: string | undefined;
}

/** Options for following a registry. An absent one has the default of the network. */
export type AddOptions = NamedRegistry & Pick<RequestedRegistry, 'startBlock' | 'confirmations'>;

/**
 * Follows a registry from now on, after a check against its chain.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN; RequestError REGISTRY_INVALID; Refusal
 *   REGISTRY_MISSING, REGISTRY_FOLLOWED, CHAIN_ID_MISMATCH, NETWORK_NOT_CONFIGURED; ChainError if the node
 *   does not answer.
 */
export async function addRegistry({
  registry,
  network,
  startBlock,
  confirmations,
}: AddOptions): Promise<Answer> {
  const { chainId, registry: address } = registryOf(registry, network);
  const onNetwork = findNetwork(String(chainId));
  if (onNetwork === undefined) throw new Error(`chain ${chainId} has no network`);
  const requested = parseRegistry({ network: onNetwork.name, address, startBlock, confirmations });
  const { registry: added, isNew } = await withRegistries((all) => all.add(requested));
  const line = isNew ? 'is followed from now on' : 'is followed already';
  return {
    lines: [`${added.network} ${added.address} ${line}`],
    json: printableJson({ outcome: isNew ? 'added' : 'unchanged', ...withoutStatus(added) }),
    isYes: true,
  };
}

/**
 * Gives a registry up. Its stored events stay.
 *
 * @param isForced also if undelivered events wait.
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN; Refusal REGISTRY_HAS_UNDELIVERED,
 *   REGISTRY_IN_SETTINGS, REGISTRY_UNKNOWN.
 */
export async function removeRegistry(
  { registry, network }: NamedRegistry,
  isForced: boolean,
): Promise<Answer> {
  const { chainId, registry: given } = registryOf(registry, network);
  const key = { chainId, address: given.toLowerCase() };
  const { isGivenUp, undelivered } = await withRegistries((all) => all.giveUp(key, isForced));
  if (!isGivenUp) {
    const remedy = 'Run it again with --force.';
    const message =
      `${undelivered} undelivered events of ${chainId}:${key.address} wait. They stay, but nothing sends ` +
      `them until it is added again. ${remedy}`;
    throw new Refusal('REGISTRY_HAS_UNDELIVERED', message, { remedy });
  }
  const kept = undelivered > 0 ? `; ${undelivered} undelivered events stay in the database` : '';
  return {
    lines: [`${chainId}:${key.address} is not followed any more${kept}`],
    json: printableJson({ outcome: 'removed', ...key, undelivered }),
    isYes: true,
  };
}
