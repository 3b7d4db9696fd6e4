import { ConfigurationError } from '../base/errors';
import rows from './known-networks.json';

/** The block tags of JSON-RPC by which a chain says what is final. */
export const FINALITY_TAGS = ['finalized', 'safe'] as const;

export type FinalityTag = (typeof FINALITY_TAGS)[number];

/**
 * When a block is final: with this many blocks on top of it, or when it is not above the block that the chain
 * gives for this tag.
 */
export type Confirmations = number | FinalityTag;

/** More blocks than any network needs. */
export const MOST_CONFIRMATIONS = 100_000;

/** The text of a setting or an argument as confirmations; undefined if it is wrong. */
export function readConfirmations(text: string): Confirmations | undefined {
  if (/^\d{1,6}$/.test(text)) return Number(text) <= MOST_CONFIRMATIONS ? Number(text) : undefined;
  return FINALITY_TAGS.find((tag) => tag === text);
}

/**
 * A chain that documents can be issued on.
 *
 * - `name`: the value of `NET` and of Hardhat's `--network`.
 * - `chainKey`: `data.chainKey` of the events.
 * - `currency`: native currency symbol, `credentialStatus.tokenNetwork.chain` of the credentials.
 * - `rpcUrl`: `{key}` stands for the value of the setting named in `rpcKey`.
 * - `explorerUrl`: block explorer with `/tx/HASH` and `/address/ADDRESS`, without a slash at the end.
 * - `explorerApi`: the kind of API at which contract sources are verified (deploy/explorers.ts); undefined if
 *   unknown.
 * - `gasStationUrl`: publishes current fees (transactions.ts).
 * - `leastPriorityFeeGwei`: its nodes refuse less.
 * - `gasPricing`: the fee fields of a transaction (transactions.ts).
 * - `blockTimeMs`: usual time between two blocks; 0 for a chain that mines only when there are transactions.
 * - `addressPrefix`: some of its nodes write it in the place of `0x` before addresses (transport.ts).
 * - `confirmations`: blocks that must be on top of a block that is final, unless CONFIRMATIONS is set.
 */
export interface Network {
  readonly chainId: number;
  readonly name: string;
  readonly chainKey: string;
  readonly currency: string;
  readonly rpcUrl: string;
  readonly rpcKey?: RpcKeySetting;
  readonly explorerUrl?: string;
  readonly explorerApi?: ExplorerApi;
  readonly gasStationUrl?: string;
  readonly leastPriorityFeeGwei?: number;
  readonly gasPricing: GasPricing;
  readonly blockTimeMs: number;
  readonly addressPrefix?: string;
  readonly confirmations: number;
  readonly local: boolean;
}

/**
 * How a network prices gas:
 *
 * - `eip-1559`: `maxFeePerGas` and `maxPriorityFeePerGas`, or a gas price if the node has no base fee.
 * - `legacy`: one gas price, from the node. Every network accepts such transactions.
 * - `free`: a gas price of 0.
 */
export type GasPricing = 'eip-1559' | 'legacy' | 'free';

/** Terms of fees, by the network and the settings. */
export interface FeeTerms {
  gasPricing: GasPricing;
  /** The least priority fee; undefined: any. */
  leastGwei: number | undefined;
  /** Undefined: the node is asked for the fees. */
  stationUrl: string | undefined;
}

/** Software of a block explorer. */
export type ExplorerApi = 'etherscan' | 'blockscout';

/** Settings that hold the key of an RPC provider. */
export type RpcKeySetting = 'PROVIDER_API_KEY' | 'NETWORK_A_API_KEY' | 'NETWORK_A_TESTNET_API_KEY';

/**
 * Every network of the registry's v5 contracts. A new network needs only an entry in known-networks.json.
 * docs/networks.md has the sources of the figures.
 */
export const NETWORKS = rows as readonly Network[];

/** The pause between two looks for what the next block may bring. */
export function pollingMsOf({ blockTimeMs }: Network): number {
  return Math.min(Math.max(blockTimeMs, SHORTEST_POLLING_MS), LONGEST_POLLING_MS);
}

const SHORTEST_POLLING_MS = 200;
const LONGEST_POLLING_MS = 4_000;

/** Used when NET is not set: the Amoy test network (docs/specification.md 1.4). */
export const DEFAULT_NETWORK = 'amoy';

/** The network with the id ("80002") or name ("amoy") in NET, or undefined. */
export function findNetwork(net: string): Network | undefined {
  const wanted = net.trim().toLowerCase();
  return NETWORKS.find((network) => network.name === wanted || String(network.chainId) === wanted);
}

/**
 * The network with this chain id.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN.
 */
export function networkOfChain(chainId: number): Network {
  const network = NETWORKS.find((known) => known.chainId === chainId);
  if (network) return network;
  const message = `Chain ${chainId} is not a network of the registry's contracts.`;
  throw new ConfigurationError('NETWORK_UNKNOWN', message, { remedy: `Known: ${knownNetworks()}.` });
}

/** All names and ids, for messages: "amoy (80002), …". */
export function knownNetworks(): string {
  return NETWORKS.map(({ name, chainId }) => `${name} (${chainId})`).join(', ');
}
