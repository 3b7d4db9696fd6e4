import { getCreate2Address, keccak256, solidityPackedKeccak256 } from 'ethers';
import type { RegistryContracts } from './registry-contracts';

/**
 * Init code of OpenZeppelin's Clones.cloneDeterministic (EIP-1167). The implementation's address goes between
 * the two halves.
 */
const CLONE_INIT_CODE = ['0x3d602d80600a3d3981f3363d3d373d3d3d363d73', '5af43d82803e903d91602b57fd5bf3'];

/**
 * Computes the address of a token's title escrow: the factory's CREATE2 of (registry, tokenId), see
 * TitleEscrowFactory.create. Contracts at other addresses can emit the same events naming our registry; those
 * are ignored.
 */
export function titleEscrowAddress(contracts: RegistryContracts, tokenId: bigint): string {
  const known = addressesOf(contracts);
  const address = known.get(tokenId) ?? computed(contracts, tokenId);
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(tokenId, address);
  return address;
}

/**
 * Cache. The three hashes in JavaScript are most of the cost of decoding a log, and the logs of a token come
 * together.
 */
const KNOWN = new WeakMap<RegistryContracts, Map<bigint, string>>();
const MOST_KNOWN = 1_000;

function addressesOf(contracts: RegistryContracts): Map<bigint, string> {
  const known = KNOWN.get(contracts) ?? new Map<bigint, string>();
  KNOWN.set(contracts, known);
  return known;
}

function computed(contracts: RegistryContracts, tokenId: bigint): string {
  const salt = solidityPackedKeccak256(['address', 'uint256'], [contracts.registry, tokenId]);
  const initCode = CLONE_INIT_CODE.join(contracts.titleEscrowImplementation.slice(2));
  return getCreate2Address(contracts.titleEscrowFactory, salt, keccak256(initCode)).toLowerCase();
}
