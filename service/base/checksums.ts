import { orUndefined } from './errors';
import { getAddress, keccak256 } from 'ethers';

/** An address with its checksum; undefined if it is no address, or its checksum is wrong. */
export function checksummed(address: string): string | undefined {
  return orUndefined(() => getAddress(address));
}

/** Characters of an address without `0x`. Its checksum is a hash of them (EIP-55). */
const ADDRESS_CHARACTERS = 40;
const MOST_KNOWN = 5_000;

/**
 * Makes ethers remember the hashes that checksums of addresses consist of. It checksums every address that it
 * encodes or decodes, and the same few addresses occur in most logs and calls.
 */
export function rememberChecksums(): void {
  const hash = keccak256._;
  const known = new Map<string, Uint8Array | string>();
  keccak256.register((data) => {
    if (data.length !== ADDRESS_CHARACTERS) return hash(data);
    const key = Buffer.from(data).toString('latin1');
    const earlier = known.get(key);
    if (earlier !== undefined) return earlier;
    if (known.size >= MOST_KNOWN) known.clear();
    const hashed = hash(data);
    known.set(key, hashed);
    return hashed;
  });
}
