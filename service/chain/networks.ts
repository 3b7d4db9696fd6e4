/**
 * A chain that documents can be issued on.
 *
 * - `name`: what `NET` and Hardhat's `--network` take.
 * - `chainKey`: `data.chainKey` of the events.
 * - `currency`: native currency symbol, `credentialStatus.tokenNetwork.chain` of the credentials.
 * - `rpcUrl`: `{key}` stands for the value of the setting named in `rpcKey`.
 * - `confirmations`: blocks that must be mined on top of an event's block before it is delivered, unless CONFIRMATIONS says otherwise.
 */
export interface Network {
  readonly chainId: number;
  readonly name: string;
  readonly chainKey: string;
  readonly currency: string;
  readonly rpcUrl: string;
  readonly rpcKey?: RpcKeySetting;
  readonly gasStationUrl?: string;
  readonly confirmations: number;
  readonly local: boolean;
}

/** Settings that hold the key of an RPC provider. */
export type RpcKeySetting = 'PROVIDER_API_KEY' | 'NETWORK_A_API_KEY' | 'NETWORK_A_TESTNET_API_KEY';

const LOCAL_RPC_URL = 'http://127.0.0.1:8545';

/** Every network of the registry's v5 contracts (DESIGN section 2). Adding a row is all that a new network needs. */
export const NETWORKS: readonly Network[] = [
  local(31337, 'localhost', 'hardhat'),
  local(1337, 'local', 'local'),
  infura(1, 'mainnet', 'ethereum', 'ETH', 12),
  infura(11155111, 'sepolia', 'ethereum-sepolia', 'ETH', 12, 'sepolia'),
  polygon(137, 'polygon', 'polygon', 'polygon-mainnet', 'v2'),
  polygon(80002, 'amoy', 'polygon-amoy', 'polygon-amoy', 'amoy'),
  open(50, 'xdc', 'XDC', 'https://rpc.ankr.com/xdc'),
  open(51, 'xdcapothem', 'XDC', 'https://rpc.apothem.network'),
  stability(101010, 'stability', 'https://rpc.stabilityprotocol.com/zgt/{key}', 'NETWORK_A_API_KEY'),
  stability(
    20180427,
    'stabilitytestnet',
    'https://rpc.testnet.stabilityprotocol.com/zgt/{key}',
    'NETWORK_A_TESTNET_API_KEY',
  ),
  open(1338, 'astron', 'ASTRON', 'https://astronlayer2.bitfactory.cn/rpc/'),
  open(21002, 'astrontestnet', 'ASTRON', 'https://dev-astronlayer2.bitfactory.cn/query/'),
];

/** Used when NET is not set: the Amoy test network (the document's configuration table). */
export const DEFAULT_NETWORK = 'amoy';

/** The network that NET names, by chain id ("80002") or by name ("amoy"), or undefined. */
export function findNetwork(net: string): Network | undefined {
  const wanted = net.trim().toLowerCase();
  return NETWORKS.find((network) => network.name === wanted || String(network.chainId) === wanted);
}

/** All names and ids, for messages: "amoy (80002), …". */
export function knownNetworks(): string {
  return NETWORKS.map(({ name, chainId }) => `${name} (${chainId})`).join(', ');
}

function local(chainId: number, name: string, chainKey: string): Network {
  return { chainId, name, chainKey, currency: 'ETH', rpcUrl: LOCAL_RPC_URL, confirmations: 0, local: true };
}

function infura(
  chainId: number,
  name: string,
  chainKey: string,
  currency: string,
  confirmations: number,
  host = 'mainnet',
): Network {
  const rpcUrl = `https://${host}.infura.io/v3/{key}`;
  return {
    chainId,
    name,
    chainKey,
    currency,
    rpcUrl,
    rpcKey: 'PROVIDER_API_KEY',
    confirmations,
    local: false,
  };
}

function polygon(chainId: number, name: string, chainKey: string, host: string, station: string): Network {
  const gasStationUrl = `https://gasstation.polygon.technology/${station}`;
  return { ...infura(chainId, name, chainKey, 'POL', 32, host), gasStationUrl };
}

function open(chainId: number, name: string, currency: string, rpcUrl: string): Network {
  return { chainId, name, chainKey: name, currency, rpcUrl, confirmations: 12, local: false };
}

function stability(chainId: number, name: string, rpcUrl: string, rpcKey: RpcKeySetting): Network {
  return { ...open(chainId, name, 'FREE', rpcUrl), rpcKey };
}
