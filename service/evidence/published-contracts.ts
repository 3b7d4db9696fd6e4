import { dataLength, dataSlice, getBytes, keccak256 } from 'ethers';

// The code of the v5 contracts that TradeTrust publishes, as a proof of the state sees it.

/**
 * The Keccak-256 hashes of the contracts' code, its metadata masked. The hash in the metadata depends on
 * paths and comments of the sources, so every build of the same code has another one.
 */
export const PUBLISHED_CODE = {
  registry: '0x2d3efc7b13676e99bb15c70b9d180b9aed5dfb0247fa905f972eefeb7860a472',
  titleEscrowFactory: '0xd9fc36f13b5fb6b6ddfdbb33b405e28336ed74451dc6bd5937c372ae333fcbb2',
  titleEscrow: '0x19885bbb597c0ee5b7b2a2ad0a790b16863c9c3f21b7078a4ca07a18cb2a9e8e',
} as const;

/**
 * A CBOR map of two entries, the first with the key "ipfs" and a value of 34 bytes. solc ends code with
 * it.
 */
const METADATA_START = 'a2646970667358221220';
const METADATA_HASH_BYTES = 32;

/** The hash of code whose metadata is masked. */
export function maskedCodeHash(code: string): string {
  const bytes = Buffer.from(getBytes(code));
  const start = Buffer.from(METADATA_START, 'hex');
  const at = bytes.lastIndexOf(start);
  // Its length follows in the last two bytes of the code.
  const isMetadata = at >= 0 && bytes.length - 2 - at === bytes.readUInt16BE(bytes.length - 2);
  if (isMetadata) bytes.fill(0, at + start.length, at + start.length + METADATA_HASH_BYTES);
  return keccak256(bytes);
}

const CLONE_START = '0x363d3d373d3d3d363d73';
const CLONE_END = '0x5af43d82803e903d91602b57fd5bf3';
const CLONE_BYTES = 45;

/** The contract whose code a clone runs (EIP-1167). Undefined for other code. */
export function implementationOf(code: string): string | undefined {
  const isClone =
    dataLength(code) === CLONE_BYTES && code.startsWith(CLONE_START) && dataSlice(code, 30) === CLONE_END;
  return isClone ? dataSlice(code, 10, 30) : undefined;
}
