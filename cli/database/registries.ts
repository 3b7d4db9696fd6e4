import { systemTime } from '../../service/base/time';
import { RequestError } from '../../service/base/errors';
import { registryName } from '../../service/base/registry-name';
import { type Confirmations, readConfirmations } from '../../service/chain/networks';
import { parseRegistry } from '../../service/followed-registries/parse-registry';
import { Registries, type ListedRegistry } from '../../service/followed-registries/registries';
import type { Answer } from '../answer';
import { Refusal } from '../errors';
import { registryOf } from '../token/find-token';
import { withDatabase } from './with-database';

/** The options of `tdoc registries add`. An absent one has the default of the network. */
export interface AddRegistryOptions {
  registry: string;
  network?: string;
  startBlock?: number;
  confirmations?: string;
}

/** The options of `tdoc registries remove`. `force`: also if undelivered events wait. */
export interface RemoveRegistryOptions {
  registry: string;
  network?: string;
  force?: true;
}

/** Lists the followed registries. */
export async function listRegistries(): Promise<Answer> {
  const registries = await withRegistries((all) => all.list());
  const lines = registries.map(lineOf);
  return {
    lines: lines.length === 0 ? ['no registry is followed'] : lines,
    json: { registries: registries.map(withoutStatus) },
    isYes: true,
  };
}

/**
 * Follows a registry from now on, after a check against its chain.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN; RequestError REGISTRY_INVALID; Refusal
 *   REGISTRY_MISSING, REGISTRY_FOLLOWED, CHAIN_ID_MISMATCH, FINALITY_UNSUPPORTED, NETWORK_NOT_CONFIGURED;
 *   ChainError if the node does not answer.
 */
export async function addRegistry(options: AddRegistryOptions): Promise<Answer> {
  const { startBlock, confirmations: given } = options;
  const confirmations = given === undefined ? undefined : (readConfirmations(given) ?? given);
  const { chainId, registry: address } = registryOf(options.registry, options.network);
  const requested = parseRegistry({ network: chainId, address, startBlock, confirmations });
  const { registry, isNew } = await withRegistries((all) => all.add(requested));
  const line = isNew ? 'is followed from now on' : 'is followed already';
  return {
    lines: [`${registry.network} ${registry.address} ${line}`],
    json: { outcome: isNew ? 'added' : 'unchanged', ...withoutStatus(registry) },
    isYes: true,
  };
}

/**
 * Gives a registry up. Its stored events stay.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN; Refusal REGISTRY_HAS_UNDELIVERED,
 *   REGISTRY_IN_SETTINGS, REGISTRY_UNKNOWN.
 */
export async function removeRegistry({ registry, network, force }: RemoveRegistryOptions): Promise<Answer> {
  const { chainId, registry: given } = registryOf(registry, network);
  const key = { chainId, address: given.toLowerCase() };
  const name = registryName(chainId, given);
  const { isGivenUp, undelivered } = await withRegistries((all) => all.giveUp(key, force === true));
  if (!isGivenUp) {
    const remedy = 'Run it again with --force.';
    const message =
      `${undelivered} undelivered events of ${name} wait. They stay, but nothing sends them until it is ` +
      `added again. ${remedy}`;
    throw new Refusal('REGISTRY_HAS_UNDELIVERED', message, { remedy });
  }
  const kept = undelivered > 0 ? `; ${undelivered} undelivered events stay in the database` : '';
  return {
    lines: [`${name} is not followed any more${kept}`],
    json: { outcome: 'removed', ...key, undelivered },
    isYes: true,
  };
}

/** @throws Refusal for every RequestError of the work: nothing was changed. */
async function withRegistries<T>(work: (registries: Registries) => Promise<T>): Promise<T> {
  return withDatabase(async (database, settings) => {
    const onChange = async (): Promise<void> => undefined;
    const parts = { database, settings, time: systemTime, statusOf: () => undefined, onChange };
    return work(new Registries(parts)).catch((cause: unknown) => {
      if (!(cause instanceof RequestError)) throw cause;
      throw new Refusal(cause.code, cause.message, { cause });
    });
  });
}

function lineOf({ network, address, origin, confirmations, undelivered, feed }: ListedRegistry): string {
  const read = feed.nextBlock === undefined ? 'not read yet' : `next block ${feed.nextBlock}`;
  const added = origin === 'settings' ? 'of the settings' : 'added';
  return (
    `${network}  ${address}  ${added}, ${waitOf(confirmations)}, ` + `${read}, ${undelivered} undelivered`
  );
}

function waitOf(confirmations: Confirmations | undefined): string {
  const isTag = typeof confirmations === 'string';
  return isTag ? `once ${confirmations}` : `${confirmations ?? '?'} confirmations`;
}

/** A registry as JSON. Only a running service knows the state of its feed. */
function withoutStatus({ feed, ...registry }: ListedRegistry): object {
  return { ...registry, nextBlock: feed.nextBlock ?? null };
}
