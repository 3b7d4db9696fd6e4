import type { KeyObject } from 'node:crypto';
import { getAddress } from 'ethers';
import { findNetwork, type Network } from '../chain/networks';
import {
  LONGEST_POLL_INTERVAL_MS,
  SHORTEST_POLL_INTERVAL_MS,
  type ConfigFile,
  type RegistryEntry,
} from './config-file';
import { ConfigurationError } from '../base/errors';
import { integerOf, rpcUrlOf, type Settings } from './settings';
import type { Pauses } from '../watcher/block-alarm';
import { webhookOf, webhookOptionsOf, type Webhook } from './webhook-settings';

/** A registry whose events are read and delivered. */
export interface FollowedRegistry {
  readonly network: Network;
  /** With its checksum. */
  readonly address: string;
  readonly rpcUrl: string;
  /** First block to read; undefined: the registry's `genesis()`. */
  readonly startBlock: number | undefined;
  /** Blocks that must be mined on top of an event's block before it is delivered. */
  readonly confirmations: number;
  /** Pauses between two queries for new blocks. */
  readonly pauses: Pauses;
  /** Undefined: events are stored and wait. */
  readonly webhook: Webhook | undefined;
}

/** The registry in which documents are issued: NET, RPC_URL and TOKEN_REGISTRY_ADDRESS. */
export interface OwnRegistry {
  network: Network;
  rpcUrl: string;
  address: string | undefined;
}

/**
 * The registries of service.config.json, and the one that documents are issued in: the events of issued
 * documents are always delivered. Without `registries` it is the only one.
 *
 * @throws ConfigurationError if one is listed twice, or a setting is wrong.
 */
export function followedRegistriesOf(
  settings: Settings,
  file: ConfigFile,
  own: OwnRegistry,
  signingKey: KeyObject | undefined,
): FollowedRegistry[] {
  // Checked even if there is no registry to follow yet.
  const defaults: Defaults = {
    confirmations: integerOf(settings, 'CONFIRMATIONS', 0, 100_000),
    pollIntervalMs: integerOf(
      settings,
      'POLL_INTERVAL_MS',
      SHORTEST_POLL_INTERVAL_MS,
      LONGEST_POLL_INTERVAL_MS,
    ),
    startBlock: integerOf(settings, 'START_BLOCK', 0, Number.MAX_SAFE_INTEGER),
    webhook: webhookOf(webhookOptionsOf(settings, file.webhook), signingKey),
  };
  const entries = [...(file.registries ?? [])];
  const keys = entries.map(keyOf);
  const twice = keys.findIndex((key, index) => keys.indexOf(key) !== index);
  if (twice >= 0) {
    const message = `registries.${twice} is the same registry as registries.${keys.indexOf(keys[twice] ?? '')}.`;
    throw new ConfigurationError('CONFIGURATION_INVALID', `service.config.json: ${message} List it once.`);
  }
  if (own.address !== undefined) {
    const entry = { network: own.network.name, address: own.address };
    if (!keys.includes(keyOf(entry))) entries.push(entry);
  }
  return entries.map((entry) => {
    const network = networkOf(entry);
    const isOwnNetwork = network === own.network;
    const isOwn = isOwnNetwork && own.address !== undefined && getAddress(entry.address) === own.address;
    return {
      network,
      address: getAddress(entry.address),
      // RPC_URL is a node of NET's chain.
      rpcUrl:
        entry.rpcUrl ?? (isOwnNetwork ? own.rpcUrl : rpcUrlOf(network, { ...settings, RPC_URL: undefined })),
      startBlock: entry.startBlock ?? (isOwn ? defaults.startBlock : undefined),
      confirmations:
        entry.confirmations ?? (isOwnNetwork ? defaults.confirmations : undefined) ?? network.confirmations,
      pauses: pausesOf(network, entry.pollIntervalMs ?? (isOwnNetwork ? defaults.pollIntervalMs : undefined)),
      webhook: entry.webhook
        ? webhookOf(webhookOptionsOf(settings, file.webhook, entry.webhook), signingKey)
        : defaults.webhook,
    };
  });
}

/**
 * In milliseconds. At this interval the daily credits of a provider's free plan (Infura: 3,000,000) are
 * sufficient.
 */
const POLL_INTERVAL_MS = 60_000;
const LOCAL_POLL_INTERVAL_MS = 200;

/**
 * The pauses between two requests to a chain, unless POLL_INTERVAL_MS is set. The shortest is the block time.
 */
export function pausesOf(network: Network, pollIntervalMs: number | undefined): Pauses {
  const longest = pollIntervalMs ?? (network.local ? LOCAL_POLL_INTERVAL_MS : POLL_INTERVAL_MS);
  return {
    shortest: Math.min(network.local ? LOCAL_POLL_INTERVAL_MS : network.blockTimeMs, longest),
    longest,
  };
}

/** Defaults for NET's registry, and the webhook for registries without their own. */
type Defaults = {
  confirmations: number | undefined;
  pollIntervalMs: number | undefined;
  startBlock: number | undefined;
  webhook: Webhook | undefined;
};

function networkOf({ network }: RegistryEntry): Network {
  const found = findNetwork(network);
  if (found) return found;
  throw new ConfigurationError('CONFIGURATION_INVALID', `registries: ${network} is not a known network.`);
}

function keyOf(entry: RegistryEntry): string {
  return `${networkOf(entry).chainId}:${getAddress(entry.address)}`;
}
