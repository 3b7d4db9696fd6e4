import type { BlockId } from '../journal/issuance';
import type { Mint } from './mint';
import type { QueueParts } from './queue-parts';

/** Follows mined mints until they are final, and final ones in case of a deep reorganisation. */
export interface MintFinality {
  /** Marks mints as final whose blocks are deep enough, and sends those again whose blocks are gone. */
  followMined(mints: readonly Mint[]): Promise<void>;
  /** Detects a reorganisation deeper than CONFIRMATIONS by the block of the highest final mint. */
  followFinal(): Promise<void>;
}

/**
 * Marks mints as final when their blocks have CONFIRMATIONS blocks on top, and sends those again whose blocks
 * are gone. After a deeper reorganisation, the mints that it removed are minted again, because their
 * documents were handed out.
 */
export function createMintFinality(parts: QueueParts): MintFinality {
  const { chain, network, recorder, states, timing, wallet } = parts;
  /** When the block of the highest final mint was first missing, by `performance.now()`. */
  let goneSince: number | undefined;
  let checkedAt = -Infinity;

  async function followMined(mints: readonly Mint[]): Promise<void> {
    const deep = await chain.deep();
    const due = mints.filter(({ mined }) => mined !== undefined && mined.block.number <= deep);
    const blocks = due.map(({ mined }) => mined?.block);
    // The newest block stands for all blocks below it. Blocks that become final are checked one by one.
    const [newest] = mints.flatMap(({ mined }) => mined?.block ?? []).sort((a, b) => b.number - a.number);
    const areThere = await Promise.all([...blocks, newest].map(isThere));
    recorder.final(due.filter((_, index) => areThere[index]));
    const others = mints.filter((mint) => states.stateOf(mint) === 'mined');
    if (!areThere.every(Boolean)) await Promise.all(others.map(findAgain));
    else for (const mint of others) mint.goneSince = undefined;
  }

  /**
   * Handles a mint whose block may be gone. It asks for another block with the token until a node that is
   * behind must have caught up.
   */
  async function findAgain(mint: Mint): Promise<void> {
    const verdict = await chain.verdictOn(mint, mint.transactions);
    if (states.stateOf(mint) !== 'mined' || mint.mined === undefined) return;
    // A node that is behind still reports the block that is gone.
    if (verdict.state === 'mined' && (await isThere(verdict.mined.block)))
      return recorder.mined(mint, verdict.mined);
    mint.goneSince ??= performance.now();
    if (performance.now() - mint.goneSince < timing.patienceMs) return;
    recorder.unmined(mint);
    states.sendAgain(mint, wallet.address);
  }

  async function followFinal(): Promise<void> {
    const now = performance.now();
    if (now - checkedAt < timing.finalCheckMs) return;
    const anchor = await highestFinal();
    checkedAt = now;
    if (anchor === undefined || (await isThere(anchor))) {
      goneSince = undefined;
      return;
    }
    goneSince ??= now;
    const isBehind = (await chain.head()) < anchor.number && !network.local;
    checkedAt = -Infinity;
    if (isBehind || now - goneSince < timing.patienceMs) return;
    goneSince = undefined;
    await reopen(anchor);
  }

  /** The highest block of a final mint, or the highest below block `below`. */
  async function highestFinal(below?: number): Promise<BlockId | undefined> {
    return recorder.persist((journal) => journal.highestFinal(below));
  }

  async function isThere(block: BlockId | undefined): Promise<boolean> {
    return block === undefined || (await chain.blockHash(block.number)) === block.hash;
  }

  async function reopen(anchor: BlockId): Promise<void> {
    if (network.local && !(await recorder.enterChain(await chain.genesisHash()))) return;
    let since = anchor.number;
    for (let block: BlockId | undefined = anchor; !(await isThere(block));) {
      since = block?.number ?? since;
      block = await highestFinal(since);
    }
    const removed = (await recorder.persist((journal) => journal.finalSince(since))) ?? [];
    // The journal calls a mint final until it is sent again: one that was taken up is not counted twice.
    const reopened = removed.filter(({ issuance }) => states.find(issuance.tokenId) === undefined);
    if (reopened.length === 0) return;
    recorder.reorganised(reopened.length, since);
    for (const one of reopened) states.takeUp(one, wallet.address);
  }

  return { followMined, followFinal };
}
