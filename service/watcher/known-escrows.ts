import { zeroPadValue } from 'ethers';
import type { LogFilter } from '../chain/read-chain';
import { BURN_ADDRESS, type DecodedLog } from '../registry/decode-log';
import {
  factoryInterface,
  registryInterface,
  titleEscrowAddress,
  type RegistryContracts,
  type RegistryOnChain,
} from '../registry/registry-contracts';

/** The blocks in which a token was minted, and burned. */
interface Life {
  mintedAt: number;
  burnedAt: number | undefined;
}

/** Blocks whose mints are read at once. */
const BLOCKS_AT_ONCE = 10_000;

/**
 * The title escrows of a registry, for nodes that give logs only with their addresses. A token's mint, burn
 * and restoring have a log of the registry; nominations, transfers and rejections only one of the escrow.
 */
export class KnownEscrows {
  readonly #lives = new Map<string, Life>();
  /** All mints before this block are known. */
  #nextBlock: number;
  /** Nothing is kept until a node is read by address. */
  #isUsed = false;
  #reading: Promise<void> | undefined;

  readonly contracts: RegistryContracts;
  /** The registry was created in it. */
  readonly genesisBlock: number;

  /** @param finalityDepth blocks that a reorganisation may take back. */
  constructor(
    { contracts, genesisBlock }: Pick<RegistryOnChain, 'contracts' | 'genesisBlock'>,
    private readonly finalityDepth: number,
  ) {
    this.contracts = contracts;
    this.genesisBlock = genesisBlock;
    this.#nextBlock = genesisBlock;
  }

  /**
   * The logs by which mints and burns are known: of the factory, and of the registry. In its first block, a
   * registry grants roles.
   */
  filters(block: number): Pick<LogFilter, 'address' | 'topics' | 'otherTopics'>[] {
    const { registry, titleEscrowFactory } = this.contracts;
    const created = factoryInterface.getEvent('TitleEscrowCreated').topicHash;
    const transfer = registryInterface.getEvent('Transfer').topicHash;
    const granted = registryInterface.getEvent('RoleGranted').topicHash;
    return [
      ...(block === this.genesisBlock ? [{ address: [registry], topics: [granted] }] : []),
      { address: [titleEscrowFactory], topics: [created], otherTopics: [null, zeroPadValue(registry, 32)] },
      { address: [registry], topics: [transfer], otherTopics: [null, zeroPadValue(BURN_ADDRESS, 32)] },
    ];
  }

  /** The blocks whose mints have to be read before those of `block` can be read by address. */
  missingBefore(block: number): number {
    return Math.max(0, block - this.#nextBlock);
  }

  /**
   * Reads the mints before a block that are not known yet, those of the last `alone` blocks block by block.
   *
   * @param read the genuine logs of `filters`, of these blocks.
   */
  async learnBefore(
    block: number,
    alone: number,
    read: (first: number, last: number) => Promise<DecodedLog[]>,
  ): Promise<void> {
    this.#isUsed = true;
    // A node is read twice at the same time: the second reading needs what the first one learns.
    while (this.#reading !== undefined) await this.#reading.catch(() => undefined);
    const learn = async (): Promise<void> => {
      while (this.#nextBlock < block) {
        const first = this.#nextBlock;
        const last = Math.max(first, Math.min(block - alone, first + BLOCKS_AT_ONCE) - 1);
        this.note(await read(first, last), first, last);
      }
    };
    this.#reading = learn().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  /** Notes the logs that were read of the blocks `first` to `last`. */
  note(logs: readonly DecodedLog[], first: number, last: number): void {
    if (!this.#isUsed || first > this.#nextBlock) return;
    // An earlier reading may have found a burn of another branch there.
    for (const life of this.#lives.values())
      if (life.burnedAt !== undefined && life.burnedAt >= first && life.burnedAt <= last)
        life.burnedAt = undefined;
    for (const { type, tokenId, blockNumber } of logs) {
      if (tokenId === undefined || (type !== 'escrow_created' && type !== 'burned')) continue;
      const escrow = titleEscrowAddress(this.contracts, tokenId);
      const { mintedAt = blockNumber, burnedAt } = this.#lives.get(escrow) ?? {};
      if (type === 'burned') this.#lives.set(escrow, { mintedAt, burnedAt: blockNumber });
      else this.#lives.set(escrow, { mintedAt: Math.min(mintedAt, blockNumber), burnedAt });
    }
    this.#nextBlock = Math.max(this.#nextBlock, last + 1);
  }

  /** The escrows that may have logs in these blocks. A burned token has none after its burn. */
  of(first: number, last: number): string[] {
    const oldest = first - this.finalityDepth;
    return [...this.#lives].flatMap(([escrow, { mintedAt, burnedAt = Infinity }]) =>
      mintedAt <= last && burnedAt >= oldest ? escrow : [],
    );
  }

  /** The escrows that may have logs in this block, if all are known, and there are at most so many. */
  few(block: number, most: number): string[] | undefined {
    if (!this.#isUsed || this.#nextBlock < block) return undefined;
    const escrows = this.of(block, block);
    return escrows.length <= most ? escrows : undefined;
  }

  /** The blocks after this one are no longer on the chain: their burns did not happen. */
  rewindTo(block: number): void {
    this.#nextBlock = Math.min(this.#nextBlock, Math.max(block + 1, this.genesisBlock));
    for (const life of this.#lives.values())
      if (life.burnedAt !== undefined && life.burnedAt > block) life.burnedAt = undefined;
  }
}
