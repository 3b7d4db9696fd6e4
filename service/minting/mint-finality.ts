import type { BlockId } from '../journal/issuance';
import { recordMined } from './give-up';
import { newPending, readSignedMint, type Mint } from './mint';
import type { QueueParts } from './queue-parts';

/** Blocks of final mints that are read from the journal together. */
const BLOCKS_AT_ONCE = 50;

/**
 * Makes mints final whose blocks have CONFIRMATIONS blocks on top, and sends those again whose blocks are gone. A reorganisation that was deeper is found
 * by the highest block of a final mint: the documents of the mints that it took are out in the world, so they are minted again.
 */
export class MintFinality {
  readonly #parts: QueueParts;
  /** Since when the highest block of a final mint is not on the chain, by `performance.now()`. */
  #goneSince: number | undefined;
  #checkedAt = -Infinity;

  constructor(parts: QueueParts) {
    this.#parts = parts;
  }

  /** Their blocks become final, or are gone. */
  async lookAtMined(mints: readonly Mint[]): Promise<void> {
    const { chain, recorder } = this.#parts;
    const head = await chain.head();
    const deep = chain.deepBelow(head);
    const blocks = new Map(mints.flatMap(({ mined }) => (mined ? [[mined.block.number, mined.block]] : [])));
    // The newest block stands for all below it; what becomes final is looked at itself.
    const newest = Math.max(...blocks.keys());
    const looked = [...blocks.values()].filter(({ number }) => number <= deep || number === newest);
    const hashes = new Map(
      await Promise.all(looked.map(async ({ number }) => [number, await chain.blockHash(number)] as const)),
    );
    const isThere = ({ number, hash }: BlockId): boolean => hashes.get(number) === hash;
    const isIntact = looked.every(isThere);
    const final = mints.filter(
      ({ mined }) => mined !== undefined && mined.block.number <= deep && isThere(mined.block),
    );
    recorder.final(final);
    if (isIntact) for (const mint of mints) mint.goneSince = undefined;
    else
      await Promise.all(mints.filter((mint) => !final.includes(mint)).map((mint) => this.#findAgain(mint)));
  }

  /** Its block may be gone: whether the token was made in another is asked until a node that is behind must have it. */
  async #findAgain(mint: Mint): Promise<void> {
    const { chain, timing, recorder, states, wallet } = this.#parts;
    const { tokenId } = mint.issuance;
    const hashes = mint.transactions.map(({ hash }) => hash);
    const verdict = await chain.verdictOn(tokenId, hashes);
    if (states.stateOf(mint) !== 'mined' || mint.mined === undefined) return;
    if (verdict.state === 'mined') {
      const isSame = verdict.mined.block.hash === mint.mined.block.hash;
      if (isSame && (await chain.blockHash(mint.mined.block.number)) !== mint.mined.block.hash) return;
      mint.goneSince = undefined;
      return isSame ? undefined : recordMined(this.#parts, mint, verdict.mined);
    }
    mint.goneSince ??= performance.now();
    if (performance.now() - mint.goneSince < timing.patienceMs) return;
    const { txHash } = mint.mined;
    recorder.unmined(mint);
    const nonce = mint.transactions.find(
      ({ hash, from }) => hash === txHash && from === wallet.address,
    )?.nonce;
    const [first, ...others] = mint.transactions.filter(
      (one) => one.from === wallet.address && one.nonce === nonce,
    );
    if (first !== undefined && states.holderOf(first.nonce) === 'nobody')
      states.ready(newPending(mint, [first, ...others]));
    else states.wait(mint);
  }

  /** A reorganisation that was deeper than CONFIRMATIONS is found by the block of the highest final mint. */
  async lookAtFinal(): Promise<void> {
    const { chain, recorder, timing, network } = this.#parts;
    const now = performance.now();
    if (now - this.#checkedAt < timing.finalCheckMs) return;
    const [anchor] = (await recorder.persist((journal) => journal.finalBlocks(1))) ?? [];
    this.#checkedAt = now;
    if (anchor === undefined || (await chain.blockHash(anchor.number)) === anchor.hash) {
      this.#goneSince = undefined;
      return;
    }
    this.#goneSince ??= now;
    const isBehind = (await chain.head()) < anchor.number && !network.local;
    this.#checkedAt = -Infinity;
    if (isBehind || now - this.#goneSince < timing.patienceMs) return;
    this.#goneSince = undefined;
    await this.#reopen(anchor);
  }

  async #reopen(anchor: BlockId): Promise<void> {
    const { chain, recorder, states } = this.#parts;
    if (!(await recorder.enterChain(await chain.genesisHash()))) return;
    let lost = anchor.number;
    let ancestor: number | undefined;
    for (let below: number | undefined; ancestor === undefined; below = lost) {
      const blocks = (await recorder.persist((journal) => journal.finalBlocks(BLOCKS_AT_ONCE, below))) ?? [];
      if (blocks.length === 0) break;
      for (const { number, hash } of blocks) {
        if ((await chain.blockHash(number)) === hash) {
          ancestor = number;
          break;
        }
        lost = number;
      }
    }
    const reopened = (await recorder.persist((journal) => journal.finalSince(lost))) ?? [];
    recorder.reorganised(reopened.length, ancestor);
    for (const { issuance, transactions, mined } of reopened) {
      if (mined === undefined || states.find(issuance.tokenId) !== undefined) continue;
      const mint = states.add(issuance, true);
      mint.transactions = transactions.map(readSignedMint);
      states.mined(mint, mined);
    }
  }
}
