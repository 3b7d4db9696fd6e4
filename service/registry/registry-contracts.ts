import { concat, dataSlice, keccak256, MaxUint256, toBeHex } from 'ethers';
import {
  TitleEscrowFactory__factory,
  TitleEscrow__factory,
  TradeTrustTokenStandard__factory,
} from '../../typechain-types';
import { ChainError, codeOf, cut, messageOf, ServiceError } from '../base/errors';
import { printableUrl, secretMasker, secretPartsOf } from '../base/mask-secrets';
import type { Time } from '../base/time';
import type { Network } from '../chain/networks';
import { blockIfThere, headNumberOf, type ChainBlock } from '../chain/read-chain';
import { isNotImplemented } from '../chain/node-errors';
import type { Chain } from '../chain/chain';
import { connectNodes } from '../chain/connect-nodes';
import { codeAt, runnerOf } from '../chain/read-state';

/** The contracts' interfaces, generated from their ABIs. */
export const registryInterface = TradeTrustTokenStandard__factory.createInterface();
export const factoryInterface = TitleEscrowFactory__factory.createInterface();
export const escrowInterface = TitleEscrow__factory.createInterface();

/** The contracts of a registry, as lower-case addresses. */
export interface RegistryContracts {
  registry: string;
  titleEscrowFactory: string;
  /** The contract that title escrows are clones of: the factory's `implementation()`. */
  titleEscrowImplementation: string;
}

/**
 * Init code of OpenZeppelin's Clones.cloneDeterministic (EIP-1167). The implementation's address goes between
 * the two halves.
 */
const CLONE_INIT_CODE = ['0x3d602d80600a3d3981f3363d3d373d3d3d363d73', '5af43d82803e903d91602b57fd5bf3'];

/**
 * Cache. The hashes in JavaScript are most of the cost of decoding a log, and the logs of a token come
 * together.
 */
const KNOWN = new WeakMap<RegistryContracts, { initCodeHash: string; addresses: Map<bigint, string> }>();
const MOST_KNOWN = 1_000;

/**
 * Computes the address of a token's title escrow: the factory's CREATE2 of (registry, tokenId), see
 * TitleEscrowFactory.create. Contracts at other addresses can emit the same events naming our registry; those
 * are ignored.
 */
export function titleEscrowAddress(contracts: RegistryContracts, tokenId: bigint): string {
  const { registry, titleEscrowFactory, titleEscrowImplementation } = contracts;
  let known = KNOWN.get(contracts);
  if (known === undefined) {
    const initCodeHash = keccak256(CLONE_INIT_CODE.join(titleEscrowImplementation.slice(2)));
    KNOWN.set(contracts, (known = { initCodeHash, addresses: new Map() }));
  }
  const { initCodeHash, addresses } = known;
  const earlier = addresses.get(tokenId);
  if (earlier !== undefined) return earlier;
  const salt = keccak256(concat([registry, toBeHex(tokenId, 32)]));
  const hash = keccak256(concat(['0xff', titleEscrowFactory, salt, initCodeHash]));
  const address = dataSlice(hash, 12);
  if (addresses.size >= MOST_KNOWN) addresses.clear();
  addresses.set(tokenId, address);
  return address;
}

/** A registry that was found on its chain. */
export interface RegistryOnChain {
  contracts: RegistryContracts;
  /** Block in which the registry was created: its first events are in this block or later. */
  genesisBlock: number;
  /** Undefined if the node has none of the blocks by which the chain is known. */
  origin: ChainOrigin | undefined;
}

/** Tells a chain from others of its chain id: block 0 or, if the node has none, the registry's first one. */
export type ChainOrigin = Pick<ChainBlock, 'number' | 'hash'>;

/**
 * Returns a function that finds the registry, once per chain: its contracts do not change. Later calls, as
 * after a failure, only check that the chain is still the same. A faulty node therefore cannot make the
 * registry look invalid.
 */
export function createRegistryFinder(client: Chain, address: string): () => Promise<RegistryOnChain> {
  let found: RegistryOnChain | undefined;
  return async () => {
    const { number, hash } = found?.origin ?? { number: 0, hash: undefined };
    const there = await blockIfThere(client, number);
    if (found && (there?.hash ?? hash) === hash) return found;
    const registry = await findRegistry(client, address);
    const block0 = number === 0 ? there : await blockIfThere(client, 0);
    found = { ...registry, origin: block0 ?? (await blockIfThere(client, registry.genesisBlock)) };
    return found;
  };
}

/**
 * Asks the registry for its factory, and the factory for its escrows.
 *
 * @throws ChainError REGISTRY_INVALID if the contract is not a registry; ESCROWS_UNSUPPORTED;
 *   REGISTRY_MISSING (retryable) if there is no contract at the address, since it may still be deployed.
 */
async function findRegistry(client: Chain, address: string): Promise<Omit<RegistryOnChain, 'origin'>> {
  // All at one block: a node that lags behind has none, and answers with an error instead of an empty result.
  const at = { blockTag: await headNumberOf(client) };
  if ((await codeAt(client, address, at.blockTag)) === '0x') {
    const remedy = 'Deploy one with `npx hardhat deploy`, or correct TOKEN_REGISTRY_ADDRESS or NET.';
    throw new ChainError('REGISTRY_MISSING', `There is no contract at ${address}. ${remedy}`, { remedy });
  }
  const runner = runnerOf(client);
  const registry = TradeTrustTokenStandard__factory.connect(address, runner);
  const [titleEscrowFactory, genesis, hasInterfaces] = await Promise.all([
    registry.titleEscrowFactory(at),
    registry.genesis(at),
    registry.supportsInterface(ERC_165, at),
  ]).catch((cause: unknown) => {
    throw isNotImplemented(cause) ? notARegistry(address, cause) : cause;
  });
  // Some contracts answer everything.
  if (!hasInterfaces) throw notARegistry(address);
  const contracts = await examineEscrows(client, address, titleEscrowFactory, at).catch((cause: unknown) => {
    throw isNotImplemented(cause) ? otherEscrows(address, 'their factory answers otherwise', cause) : cause;
  });
  return { contracts, genesisBlock: Number(genesis) };
}

/** Identifiers of EIP-165: its own, and that of ITitleEscrow in version 5. */
const ERC_165 = '0x01ffc9a7';
const TITLE_ESCROW_OF_VERSION_5 = '0x3e143f7b';

/**
 * Reads where the registry's title escrows are, and checks that they are those of version 5: at the addresses
 * that are computed here, and with its interface and its events. Otherwise their events would be taken for
 * forgeries, or not be known. Later generations claim the interface and have other events. Every build has
 * the topics of its events in its code, whatever else is in it.
 *
 * @throws ChainError ESCROWS_UNSUPPORTED.
 */
async function examineEscrows(
  client: Chain,
  registry: string,
  titleEscrowFactory: string,
  at: { blockTag: number },
): Promise<RegistryContracts> {
  const runner = runnerOf(client);
  const factory = TitleEscrowFactory__factory.connect(titleEscrowFactory, runner);
  const implementation = await factory.implementation(at);
  const contracts = {
    registry: registry.toLowerCase(),
    titleEscrowFactory: titleEscrowFactory.toLowerCase(),
    titleEscrowImplementation: implementation.toLowerCase(),
  };
  for (const tokenId of [0n, BigInt(registry), MaxUint256]) {
    const address = await factory.getEscrowAddress(registry, tokenId, at);
    if (address.toLowerCase() !== titleEscrowAddress(contracts, tokenId))
      throw otherEscrows(registry, 'they are at other addresses');
  }
  const escrow = TitleEscrow__factory.connect(implementation, runner);
  if (!(await escrow.supportsInterface(TITLE_ESCROW_OF_VERSION_5, at)))
    throw otherEscrows(registry, 'they have another interface');
  const code = await codeAt(client, implementation, at.blockTag);
  escrowInterface.forEachEvent(({ name, topicHash }) => {
    if (name !== 'Initialized' && !code.toLowerCase().includes(topicHash.slice(2)))
      throw otherEscrows(registry, `they have no event ${name} of version 5`);
  });
  return contracts;
}

function notARegistry(address: string, cause?: unknown): ChainError {
  const remedy = 'Correct TOKEN_REGISTRY_ADDRESS, or NET; `npx hardhat deploy` writes the right one.';
  const message = `The contract at ${address} is not a token registry. ${remedy}`;
  return new ChainError('REGISTRY_INVALID', message, { cause, remedy });
}

function otherEscrows(address: string, difference: string, cause?: unknown): ChainError {
  const remedy = 'Use a registry of version 5; `npx hardhat deploy` makes one.';
  const message = `The title escrows of the registry at ${address} are not of version 5: ${difference}.`;
  return new ChainError('ESCROWS_UNSUPPORTED', message, { cause, remedy });
}

/** A registry and the clients of its chain. */
export interface ReachedRegistry {
  network: Network;
  client: Chain;
  /** For queries over ranges of logs. */
  bulkClient: Chain;
  registry: RegistryOnChain;
}

/** The nodes of a network. */
export interface NetworkNode {
  network: Network;
  urls: readonly string[];
}

/**
 * Connects to a registry at a node, or at several, and closes the connection afterwards.
 *
 * @throws ConfigurationError CHAIN_ID_MISMATCH; ChainError RPC_UNREACHABLE, REGISTRY_MISSING,
 *   REGISTRY_INVALID, ESCROWS_UNSUPPORTED; ChainError NODE_FAILED for a library's error, masked because it
 *   may contain the URL with its key; any other error of `read`.
 */
export async function reachRegistry<T>(
  time: Time,
  { network, urls }: NetworkNode,
  address: string,
  read: (reached: ReachedRegistry) => Promise<T>,
): Promise<T> {
  const { client, checkChain } = connectNodes(urls, network, time);
  const { client: bulkClient } = connectNodes(urls, network, time, 'bulk');
  try {
    await checkChain();
    const registry = await createRegistryFinder(client, address)();
    return await read({ network, client, bulkClient, registry });
  } catch (thrown) {
    const isOfLibrary = !(thrown instanceof ServiceError) && codeOf(thrown) !== undefined;
    throw isOfLibrary ? nodeFailed(thrown, urls) : thrown;
  } finally {
    client.close();
    bulkClient.close();
  }
}

function nodeFailed(thrown: unknown, urls: readonly string[]): ChainError {
  // The node chose this text: a terminal prints it through cli/terminal/printable.ts, a page as text.
  const reason = cut(secretMasker(urls.flatMap(secretPartsOf))(messageOf(thrown)));
  const node = urls.map(printableUrl).join(', ');
  return new ChainError('NODE_FAILED', `The node at ${node} could not be read: ${reason}`);
}
