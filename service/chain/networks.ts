import { ConfigurationError } from '../base/errors';

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

/** Software of a block explorer. */
export type ExplorerApi = 'etherscan' | 'blockscout';

/** Settings that hold the key of an RPC provider. */
export type RpcKeySetting = 'PROVIDER_API_KEY' | 'NETWORK_A_API_KEY' | 'NETWORK_A_TESTNET_API_KEY';

const LOCAL_RPC_URL = 'http://127.0.0.1:8545';

/**
 * Every network of the registry's v5 contracts. A new network needs only a row here. docs/networks.md has the
 * sources of the figures.
 */
export const NETWORKS: readonly Network[] = [
  local(31337, 'localhost', 'hardhat'),
  local(1337, 'local', 'local'),
  infura(1, 'mainnet', 'ethereum', 'mainnet', 'https://etherscan.io'),
  infura(11155111, 'sepolia', 'ethereum-sepolia', 'sepolia', 'https://sepolia.etherscan.io'),
  {
    ...infura(137, 'polygon', 'polygon', 'polygon-mainnet', 'https://polygonscan.com'),
    ...polygon('v2'),
  },
  {
    ...infura(80002, 'amoy', 'polygon-amoy', 'polygon-amoy', 'https://amoy.polygonscan.com'),
    ...polygon('amoy'),
  },
  {
    ...keyless(50, 'xdc', 'XDC', 'https://erpc.xinfin.network', 'https://xdcscan.com'),
    explorerApi: 'etherscan',
    addressPrefix: 'xdc',
  },
  {
    ...keyless(51, 'xdcapothem', 'XDC', 'https://rpc.apothem.network', 'https://testnet.xdcscan.com'),
    explorerApi: 'etherscan',
    addressPrefix: 'xdc',
  },
  {
    ...keyless(101010, 'stability', 'FREE', stabilityRpc(''), 'https://stability.blockscout.com'),
    rpcKey: 'NETWORK_A_API_KEY',
    explorerApi: 'blockscout',
    gasPricing: 'free',
  },
  {
    ...keyless(
      20180427,
      'stabilitytestnet',
      'FREE',
      stabilityRpc('testnet.'),
      'https://stability-testnet.blockscout.com',
    ),
    rpcKey: 'NETWORK_A_TESTNET_API_KEY',
    explorerApi: 'blockscout',
    gasPricing: 'free',
  },
  astron(1338, 'astron', '', 'rpc'),
  astron(21002, 'astrontestnet', 'dev-', 'query'),
];

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

function local(chainId: number, name: string, chainKey: string): Network {
  return {
    chainId,
    name,
    chainKey,
    currency: 'ETH',
    rpcUrl: LOCAL_RPC_URL,
    gasPricing: 'eip-1559',
    blockTimeMs: 0,
    confirmations: 0,
    local: true,
  };
}

/** A chain whose RPC URL needs Infura's key, with the values of Ethereum. */
function infura(chainId: number, name: string, chainKey: string, host: string, explorerUrl: string): Network {
  return {
    chainId,
    name,
    chainKey,
    currency: 'ETH',
    rpcUrl: `https://${host}.infura.io/v3/{key}`,
    rpcKey: 'PROVIDER_API_KEY',
    explorerUrl,
    explorerApi: 'etherscan',
    gasPricing: 'eip-1559',
    blockTimeMs: 12_000,
    confirmations: 12,
    local: false,
  };
}

/** The values of Polygon's chains that differ from Ethereum's. */
function polygon(station: string) {
  const gasStationUrl = `https://gasstation.polygon.technology/${station}`;
  return { currency: 'POL', gasStationUrl, leastPriorityFeeGwei: 25, blockTimeMs: 2_000, confirmations: 32 };
}

/** A chain with blocks about every two seconds and public nodes. */
function keyless(
  chainId: number,
  name: string,
  currency: string,
  rpcUrl: string,
  explorerUrl: string,
): Network {
  return {
    chainId,
    name,
    chainKey: name,
    currency,
    rpcUrl,
    explorerUrl,
    gasPricing: 'legacy',
    blockTimeMs: 2_000,
    confirmations: 12,
    local: false,
  };
}

function astron(chainId: number, name: string, prefix: string, path: string): Network {
  const explorerUrl = `https://${prefix}astronscanl2.bitfactory.cn`;
  return {
    ...keyless(chainId, name, 'ASTRON', `https://${prefix}astronlayer2.bitfactory.cn/${path}/`, explorerUrl),
    gasStationUrl: `${explorerUrl}/gas-station`,
    gasPricing: 'eip-1559',
  };
}

/** Stability's endpoint that accepts transactions with a gas price of 0. */
function stabilityRpc(subdomain: string): string {
  return `https://rpc.${subdomain}stabilityprotocol.com/zgt/{key}`;
}
