import { getAddress } from 'ethers';

/** An address with its checksum; undefined if it is no address, or its checksum is wrong. */
export function checksummed(address: string): string | undefined {
  try {
    return getAddress(address);
  } catch {
    return undefined;
  }
}
