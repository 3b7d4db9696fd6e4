import { isHexString } from 'ethers';
import { currentDevnet } from '../../devnet/place';
import { accountsOf, nodeClient } from '../../devnet/hardhat-node';
import { operate, OPERATIONS, type Account, type OperationName } from '../../devnet/operations';
import { ChainError, ConfigurationError, messageOf } from '../../service/base/errors';
import { envFileOf, readSettings } from '../../service/config/config';
import { settingOf } from '../../service/config/settings';
import { findNetwork } from '../../service/chain/networks';
import { parseTokenId, tokenIdHexOf } from '../../service/registry/token-id-forms';
import type { Answer } from '../answer';
import { readJsonInput } from '../files/user-file';
import { invalid, Refusal } from '../errors';
import { requireAddress, tokenOf } from '../token/find-token';

/** The arguments of `tdoc operate`, as text. */
export interface OperateOptions {
  token?: string;
  to?: string;
  holder?: string;
  as?: string;
  remark?: string;
  rpc?: string;
  registry?: string;
}

/**
 * Sends an operation of the contracts with an account of a local node.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, DEVNET_UNKNOWN; Refusal NODE_NOT_LOCAL, OPERATION_REFUSED;
 *   ChainError RPC_UNREACHABLE.
 */
export async function operateToken(operation: string, options: OperateOptions): Promise<Answer> {
  if (!isOperation(operation)) {
    const known = Object.keys(OPERATIONS).join(', ');
    throw invalid(`${operation} is not an operation. Known: ${known}.`);
  }
  requireUsed(operation, options);
  const { nodeUrl, registryAddress } = placeOf(options);
  const client = nodeClient(nodeUrl, await localChainId(nodeUrl), { pollingInterval: 50 });
  try {
    const accounts = await accountsOf(client);
    const { token, to, holder, as, remark } = options;
    const tokenId = token === undefined ? undefined : await tokenIdOf(token, registryAddress);
    const done = await operate({ client, registryAddress, accounts }, operation, {
      ...(tokenId !== undefined && { tokenId }),
      ...(to !== undefined && { to: accountOf(to) }),
      ...(holder !== undefined && { holder: accountOf(holder) }),
      ...(as !== undefined && { as: accountOf(as) }),
      ...(remark !== undefined && { remark }),
    });
    const token64 = tokenId === undefined ? null : tokenIdHexOf(tokenId);
    return {
      lines: [`${operation} mined in block ${done.blockNumber}, sent by ${done.as}: ${done.transactionHash}`],
      json: { outcome: 'done', operation, tokenId: token64, registry: registryAddress, ...done },
      isYes: true,
    };
  } finally {
    client.destroy();
  }
}

function isOperation(name: string): name is OperationName {
  return Object.hasOwn(OPERATIONS, name);
}

/** @throws ConfigurationError ARGUMENT_INVALID for a flag that the operation would leave out. */
function requireUsed(operation: OperationName, { token, to, holder }: OperateOptions): void {
  const { on, gives } = OPERATIONS[operation];
  const unused = [
    on === 'registry' && token !== undefined && '--token',
    gives.length === 0 && to !== undefined && '--to',
    gives.length < 2 && holder !== undefined && '--holder',
  ].find(Boolean);
  if (unused) throw invalid(`${operation} takes no ${unused}: leave it out.`);
}

/**
 * The flags; or else the devnet that runs in this folder, unless ENV_FILE chooses settings; or else the
 * settings. A node and a registry of different places never go together.
 */
function placeOf({ rpc, registry }: OperateOptions): { nodeUrl: string; registryAddress: string } {
  if (registry !== undefined) requireAddress('--registry', registry);
  if ((rpc === undefined) !== (registry === undefined))
    throw invalid('Give --rpc and --registry together, or neither.');
  const { settings } = readSettings();
  const devnet = envFileOf() === envFileOf({}) ? currentDevnet() : undefined;
  const nodeUrl = rpc ?? devnet?.nodeUrl ?? settingOf(settings, 'RPC_URL')?.[0];
  const registryAddress =
    registry ?? devnet?.registryAddress ?? settingOf(settings, 'TOKEN_REGISTRY_ADDRESS');
  if (nodeUrl !== undefined && registryAddress !== undefined) return { nodeUrl, registryAddress };
  const remedy =
    'Start `npm run devnet`, and run this in the same folder; or give --rpc and --registry; or set RPC_URL ' +
    'and TOKEN_REGISTRY_ADDRESS.';
  throw new ConfigurationError('DEVNET_UNKNOWN', `No devnet runs in this folder. ${remedy}`, { remedy });
}

/**
 * The chain id of a node whose accounts anybody may use: of a local network, or of a Hardhat node that stands
 * in for another.
 */
async function localChainId(nodeUrl: string): Promise<number> {
  const client = nodeClient(nodeUrl);
  try {
    const chainId: unknown = await client.send('eth_chainId', []).catch((cause: unknown) => {
      const remedy = 'Start the node, or give --rpc.';
      const message = `No node answers at ${nodeUrl}: ${messageOf(cause)}. ${remedy}`;
      throw new ChainError('RPC_UNREACHABLE', message, { cause, remedy });
    });
    const id = isHexString(chainId) ? Number(chainId) : 0;
    const isLocal = findNetwork(String(id))?.local === true;
    if (isLocal || (await client.send('hardhat_metadata', []).then(Boolean, () => false))) return id;
    const remedy = 'docs/holders.md describes how a holder acts on a public network.';
    const message = `The node at ${nodeUrl} is of chain ${id}, which is not local. ${remedy}`;
    throw new Refusal('NODE_NOT_LOCAL', message, { remedy });
  } finally {
    client.destroy();
  }
}

/** An id, or the token of the credential in a file, which must be of the registry. */
async function tokenIdOf(token: string, registryAddress: string): Promise<bigint> {
  const id = parseTokenId(token);
  if (id !== undefined) return id;
  const { location } = tokenOf(await readJsonInput(token));
  if (location.registry.toLowerCase() === registryAddress.toLowerCase()) return location.tokenId;
  throw invalid(`The token of ${token} is in registry ${location.registry}, not in ${registryAddress}.`);
}

function accountOf(text: string): Account {
  return /^\d{1,4}$/.test(text) ? Number(text) : text;
}
