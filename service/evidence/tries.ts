import { encodeRlp, getBytes, hexlify, keccak256, toBeHex } from 'ethers';

// Merkle Patricia tries (Yellow Paper, appendix D). A node of a trie is found by its hash, so nodes that
// lead from a known root to a value prove the value.

/** Loaded when it is needed: it takes 8 MB of memory, and few services are asked for evidence. */
const loadLibrary = () => import('@ethereumjs/mpt');

/**
 * Makes the trie of a block's receipts or transactions: each value is under its position.
 *
 * @param positions of the values that are to be proven.
 * @returns the trie's root, and the nodes that prove these values, the root first.
 */
export async function proveListed(
  values: readonly string[],
  positions: readonly number[],
): Promise<{ root: string; nodes: string[] }> {
  const { createMPT, createMerkleProof } = await loadLibrary();
  const trie = await createMPT();
  for (const [position, value] of values.entries()) await trie.put(keyAt(position), getBytes(value));
  const nodes = new Set<string>();
  for (const position of positions)
    for (const node of await createMerkleProof(trie, keyAt(position))) nodes.add(hexlify(node));
  return { root: hexlify(trie.root()), nodes: [...nodes] };
}

/** The key of a value in the trie of a block's receipts or transactions. */
export function keyAt(position: number): Uint8Array {
  return getBytes(encodeRlp(position === 0 ? '0x' : toBeHex(position)));
}

/** Reads proven values of a trie: `0x` where the nodes prove that there is none. Undefined: not proven. */
export type ProvenReading = (key: Uint8Array | string) => Promise<string | undefined>;

/**
 * Opens the part of a trie that the nodes are of.
 *
 * @param isSecure whether values are under the hashes of their keys, as those of the state are.
 */
export async function openTrie(
  root: string,
  nodes: readonly string[],
  { isSecure = false } = {},
): Promise<ProvenReading> {
  const first = nodes.find((node) => keccak256(node) === root);
  if (first === undefined) return async () => undefined;
  const { createMPTFromProof } = await loadLibrary();
  const proof = [first, ...nodes.filter((node) => node !== first)].map((node) => getBytes(node));
  const trie = await createMPTFromProof(proof, { root: getBytes(root), useKeyHashing: isSecure });
  return async (key) => {
    try {
      return hexlify((await trie.get(getBytes(key), true)) ?? new Uint8Array());
    } catch {
      // A node is missing, or is not one.
      return undefined;
    }
  };
}
