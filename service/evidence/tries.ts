import { decodeRlp, encodeRlp, getBytes, hexlify, keccak256, toBeHex } from 'ethers';
import { orUndefined } from '../base/errors';

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
export type ProvenReading = (key: Uint8Array | string) => string | undefined;

/**
 * Opens the part of a trie that the nodes are of. A stranger may have chosen them: the library would decode a
 * node again for each value, and follow extensions without a path for hours.
 *
 * @param isSecure whether values are under the hashes of their keys, as those of the state are.
 */
export function openTrie(root: string, nodes: readonly string[], { isSecure = false } = {}): ProvenReading {
  const encoded = new Map(nodes.map((node) => [keccak256(node), node]));
  const decoded = new Map<unknown, unknown>();
  // A node of less than 32 bytes is in its parent, instead of its hash.
  const nodeAt = (child: unknown): unknown => {
    const node = typeof child === 'string' ? encoded.get(child) : undefined;
    if (node === undefined) return child;
    const known = decoded.has(child) ? decoded.get(child) : orUndefined(() => decodeRlp(node));
    decoded.set(child, known);
    return known;
  };
  return (key) => {
    let path = (isSecure ? keccak256(key) : hexlify(key)).slice(2);
    let node = nodeAt(root);
    while (Array.isArray(node)) {
      const [prefix, next] = node as unknown[];
      if (node.length === CHILDREN_AND_VALUE) {
        const child: unknown = node[parseInt(path.charAt(0), 16)];
        if (child === '0x') return child;
        path = path.slice(1);
        node = nodeAt(child);
        continue;
      }
      if (node.length !== 2 || typeof prefix !== 'string') return undefined;
      // The first nibble has the kind of the node, and whether another nibble fills the byte.
      const flags = parseInt(prefix.charAt(2), 16);
      const nibbles = prefix.slice(flags % 2 === 1 ? 3 : 4);
      const isLeaf = flags >= 2;
      if (isLeaf && path === nibbles) return typeof next === 'string' ? next : undefined;
      if (isLeaf || !path.startsWith(nibbles)) return '0x';
      if (nibbles === '') return undefined;
      path = path.slice(nibbles.length);
      node = nodeAt(next);
    }
    // A node is missing, or is not one. No key that is read ends at a branch.
    return undefined;
  };
}

/** A branch has a child for each nibble, and a value. */
const CHILDREN_AND_VALUE = 17;
