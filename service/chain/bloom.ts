import { keccak256 } from 'ethers';
import type { ChainBlock } from './read-chain';

/**
 * A header's Bloom filter has 2,048 bits. With half of them set, it says little about two addresses, and with
 * a quarter of them about nine topics.
 */
const MOST_BITS_FOR_ADDRESSES = 1_024;
const MOST_BITS_FOR_TOPICS = 512;

/** The Bloom filter of a block's logs: it never misses one (Ethereum Yellow Paper, 4.4.1). */
export class Bloom {
  readonly #bloom: Buffer;
  readonly #bits: number;

  constructor({ logsBloom }: ChainBlock) {
    this.#bloom = Buffer.from(logsBloom.slice(2), 'hex');
    this.#bits = this.#bloom.reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0);
  }

  /** Whether it is one: some nodes give none, or always zeroes. */
  get isPresent(): boolean {
    return this.#bits > 0;
  }

  /** Whether it shows if a block has a log with one of a few addresses, or of nine topics. */
  get saysMuchOfAddresses(): boolean {
    return this.#bits < MOST_BITS_FOR_ADDRESSES;
  }

  get saysMuchOfTopics(): boolean {
    return this.#bits < MOST_BITS_FOR_TOPICS;
  }

  /** Whether a log of the block may have one of these addresses or topics. */
  mayHave(words: readonly string[]): boolean {
    return words.some((word) => this.#has(word));
  }

  #has(word: string): boolean {
    const hash = Buffer.from(keccak256(word).slice(2), 'hex');
    return [0, 2, 4].every((pair) => {
      const bit = hash.readUInt16BE(pair) % 2_048;
      return ((this.#bloom.at(-1 - Math.floor(bit / 8)) ?? 0) >> (bit % 8)) % 2 === 1;
    });
  }
}
