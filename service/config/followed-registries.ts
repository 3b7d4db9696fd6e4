import { existsSync } from 'node:fs';
import { getAddress } from 'ethers';
import * as z from 'zod';
import {
  type Confirmations,
  MOST_CONFIRMATIONS,
  findNetwork,
  knownNetworks,
  type Network,
} from '../chain/networks';
import {
  HEADERS,
  PARTIAL_DELIVERY_OPTIONS,
  realisedOptions,
  type DeliveryOptions,
} from '../base/delivery-options';
import { ConfigurationError } from '../base/errors';
import { members, parseJson, problemsOf, scanJson } from '../base/json';
import { confirmationsIn, nodeUrls, parsed, readSettingFile, wrong } from './setting-types';
import { signingKeysOf } from './key-settings';
import {
  LONGEST_POLL_INTERVAL_MS,
  SHORTEST_POLL_INTERVAL_MS,
  networkUrlsOf,
  type RpcUrls,
  settingOf,
  type Settings,
} from './settings';
import { splitCredentials } from '../base/mask-secrets';

const blocks = z.number().int().nonnegative();

/** The members of the subscription `default` that an operator may set. */
const webhookSchema = members('webhook', {
  url: z.url({ protocol: /^https?$/, error: 'is not a URL of http or https.' }).optional(),
  headers: HEADERS.optional(),
  ...PARTIAL_DELIVERY_OPTIONS,
});

const registrySchema = z.strictObject({
  network: z
    .union([z.string(), z.number().transform(String)])
    .pipe(parsed(findNetwork, `is not a known network: use one of ${knownNetworks()}`)),
  address: parsed(getAddress, 'is not an address: 0x and 40 hexadecimal digits'),
  startBlock: blocks.optional(),
  confirmations: confirmationsIn(
    `must be a whole number from 0 to ${MOST_CONFIRMATIONS}, "finalized" or "safe"`,
  ).optional(),
  pollIntervalMs: z.number().int().min(SHORTEST_POLL_INTERVAL_MS).max(LONGEST_POLL_INTERVAL_MS).optional(),
  rpcUrl: z
    .union([z.string(), z.array(z.string()).transform((several) => several.join(' '))])
    .pipe(nodeUrls)
    .optional(),
  webhook: webhookSchema.optional(),
});

const configFileSchema = z.strictObject({
  webhook: webhookSchema.optional(),
  registries: z.array(registrySchema).optional(),
});

/**
 * A `webhook` object of service.config.json. All times in milliseconds; docs/settings.md has the defaults.
 */
export type WebhookOptions = z.infer<typeof webhookSchema>;

/** An entry of `registries`. */
export type RegistryEntry = z.infer<typeof registrySchema>;

/** The content of service.config.json. */
export type ConfigFile = z.infer<typeof configFileSchema>;

/**
 * Reads service.config.json; an absent file is an empty one.
 *
 * @throws ConfigurationError that names the path inside the file. Unknown keys are errors: a misspelt one
 *   must not be ignored.
 */
export function readConfigFile(path: string): ConfigFile {
  if (!existsSync(path)) return {};
  const content = readSettingFile('SERVICE_CONFIG', path);
  const { repeated } = scanJson(content);
  if (repeated !== undefined) throw invalid(`${path}: ${repeated} occurs twice; keep one.`);
  // The error of `JSON.parse` is not shown: it quotes the text around the mistake, which may be a key.
  const json = parseJson(content, (problem) => invalid(`${path} is not JSON: ${problem}.`));
  const parsed = configFileSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const problems = problemsOf(parsed.error).map(
    ({ path, problem }) => `${path.join('.') || '(top)'}: ${problem}`,
  );
  throw invalid(`${path}: ${problems.join('; ')}`);
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('CONFIGURATION_INVALID', message);
}

/** A registry whose events are read and delivered. */
export interface FollowedRegistry {
  readonly network: Network;
  /** With its checksum. */
  readonly address: string;
  readonly rpcUrls: RpcUrls;
  /** First block to read; undefined: the registry's `genesis()`. */
  readonly startBlock: number | undefined;
  /** When the block of an event is final. Before that it is not delivered. */
  readonly confirmations: Confirmations;
  readonly pauses: Pauses;
  /** Undefined: events are stored and wait. */
  readonly webhook: Webhook | undefined;
}

/** The registries that the settings follow, and the rule for any other. */
export interface Following {
  readonly registries: readonly FollowedRegistry[];
  /** The registry in which documents are issued, as it is followed. */
  readonly ownRegistry: FollowedRegistry | undefined;
  /**
   * How a registry without a setting is followed: like an entry of service.config.json.
   *
   * @throws ConfigurationError if the settings have no key for its network's node.
   */
  followedOf(this: void, entry: RegistryEntry): FollowedRegistry;
}

/** The sink of the subscription `default` for a registry, and its options. */
export interface Webhook extends DeliveryOptions {
  readonly url: string;
  /** Sent with every delivery. A user and password of the URL are in `authorization`. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * In milliseconds. At this interval the daily credits of a provider's free plan (Infura: 3,000,000) are
 * sufficient.
 */
const POLL_INTERVAL_MS = 60_000;
const LOCAL_POLL_INTERVAL_MS = 500;
/** A local chain mines at once, so its block time says nothing. */
const LOCAL_SHORTEST_PAUSE_MS = 200;

/**
 * The registries of service.config.json, and the one that documents are issued in: the events of issued
 * documents are always delivered. Without `registries` it is the only one.
 *
 * @throws ConfigurationError if one is listed twice, or a setting is wrong.
 */
export function followingOf(settings: Settings, file: ConfigFile): Following {
  // Checked even if there is no registry to follow yet.
  const common = webhookOf(settings, file.webhook);
  const net = settingOf(settings, 'NET');
  const ownAddress = settingOf(settings, 'TOKEN_REGISTRY_ADDRESS');
  const followedOf = (entry: RegistryEntry): FollowedRegistry => {
    const { network, address } = entry;
    // These settings are for NET's network, and START_BLOCK is for TOKEN_REGISTRY_ADDRESS.
    const own = network === net ? settings : {};
    const ownStart = address === ownAddress ? settingOf(own, 'START_BLOCK') : undefined;
    const longestPause = entry.pollIntervalMs ?? settingOf(own, 'POLL_INTERVAL_MS');
    return {
      network,
      address,
      rpcUrls: entry.rpcUrl ?? settingOf(own, 'RPC_URL') ?? networkUrlsOf(network, settings),
      startBlock: entry.startBlock ?? ownStart,
      confirmations: entry.confirmations ?? settingOf(own, 'CONFIRMATIONS') ?? network.confirmations,
      pauses: pausesOf(network, longestPause),
      webhook: entry.webhook ? webhookOf(settings, file.webhook, entry.webhook) : common,
    };
  };
  const registries = entriesOf(settings, file).map(followedOf);
  const ownRegistry = registries.find((one) => one.network === net && one.address === ownAddress);
  return { registries, ownRegistry, followedOf };
}

/** Bounds of the pause between two requests to a chain. */
export interface Pauses {
  shortest: number;
  longest: number;
}

/**
 * The pauses between two requests to a chain, in milliseconds, unless POLL_INTERVAL_MS is set. The pause is
 * `shortest`, the block time, after an event and grows to `longest`.
 */
export function pausesOf(network: Network, pollIntervalMs: number | undefined): Pauses {
  const longest = pollIntervalMs ?? (network.local ? LOCAL_POLL_INTERVAL_MS : POLL_INTERVAL_MS);
  const shortest = network.local ? LOCAL_SHORTEST_PAUSE_MS : network.blockTimeMs;
  return { shortest: Math.min(shortest, longest), longest };
}

/**
 * The common options, overridden by the registry's own. WEBHOOK_URL overrides the common URL. Undefined if
 * there is no URL.
 */
function webhookOf(
  settings: Settings,
  common: WebhookOptions = {},
  own: WebhookOptions = {},
): Webhook | undefined {
  const url = own.url ?? settingOf(settings, 'WEBHOOK_URL') ?? common.url;
  if (url === undefined) return undefined;
  if (signingKeysOf(settings) === undefined) {
    const remedy = 'Make a key with `npx tdoc signing-key`.';
    throw wrong('SIGNING_PRIVATE_KEY', 'is needed to sign what is sent to the webhook', remedy);
  }
  const headers = { ...common.headers, ...own.headers };
  const { url: sink, authorization } = splitCredentials(url);
  if (headers.authorization !== undefined && authorization !== undefined) {
    const problem = "is set, and so are a user or a password in the webhook's URL";
    const remedy = 'Both would be the header Authorization: leave one of them out.';
    throw wrong('webhook.headers.authorization', problem, remedy);
  }
  const retry = { ...common.retry, ...own.retry };
  return {
    url: sink,
    headers: { ...headers, ...(authorization && { authorization }) },
    ...realisedOptions({ ...common, ...own, retry }),
  };
}

/** The registries to follow, each once. */
function entriesOf(settings: Settings, { registries = [] }: ConfigFile): RegistryEntry[] {
  const keys = registries.map(keyOf);
  const twice = keys.findIndex((key, index) => keys.indexOf(key) !== index);
  if (twice >= 0) {
    const first = keys.indexOf(keys[twice] ?? '');
    const problem = `registries.${twice} is the same registry as registries.${first}`;
    throw invalid(`service.config.json: ${problem}. List it once.`);
  }
  const address = settingOf(settings, 'TOKEN_REGISTRY_ADDRESS');
  if (address === undefined) return registries;
  const own = { network: settingOf(settings, 'NET'), address };
  return keys.includes(keyOf(own)) ? registries : [...registries, own];
}

function keyOf({ network, address }: RegistryEntry): string {
  return `${network.chainId}:${address}`;
}
