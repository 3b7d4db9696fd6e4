/** A token id as the contracts take it. */
export function tokenIdAsUint256(tokenId: string): bigint {
  return BigInt(`0x${tokenId}`);
}
