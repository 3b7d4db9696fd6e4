import { createMintSimulation } from '../registry/simulate-mint';
import { ChainError } from '../base/errors';
import type { MinedMint, BlockId } from '../journal/issuance';
import { MOST_ESTIMATES, resetNonces, signAnew, giveUp } from './handle-rejections';
import type { PendingTransaction, Mint } from './mint';
import { pause } from '../base/time';
import type { QueueParts } from './queue-parts';
import { createMintResending } from './send-mints';

const SHORTEST_POLL_MS = 40;
/**
 * Percent of the gas limit: a reverted transaction that used at least this much ran out of gas. Some of the
 * limit stays unused, because each inner call keeps back a 64th (EIP-150).
 */
const NEARLY_ALL = 95n;
/** Below this number, asking for the receipts is as cheap as one log query. */
const FEWEST_FOR_LOGS = 3;
/** A block range that every provider accepts for a log query. */
const MOST_BLOCKS = 100;

/**
 * Follows all pending and mined mints together. Each round asks how many of the wallet's transactions are
 * mined, and then looks up the mints whose nonces are used. A mined mint is followed until its block is
 * final; the blocks of final mints are checked now and then.
 */
export async function followMints(parts: QueueParts): Promise<void> {
  const { chain, client, logger, nonces, recorder, states, stopping, terms, timing, wallet, width } = parts;
  const { registryAddress, time } = parts;
  const simulate = createMintSimulation(client, { registryAddress, walletAddress: wallet.address });
  const resend = createMintResending(parts);
  const finality = createMintFinality(parts);
  /** The newest block at the last log query. */
  let logsRead: number | undefined;

  const asleep = states.sleeps.following;
  let isAway = false;
  while (!stopping.aborted) {
    asleep.reset();
    const lookedAt = time.elapsed();
    try {
      await followAll();
      isAway = false;
    } catch (error) {
      if (!isAway) logger.warn({ error }, 'mints cannot be followed: the node cannot be asked');
      isAway = true;
      asleep.reset();
    }
    recorder.submitted(states.held('pending'));
    // Mined mints change seldom, final ones hardly ever.
    const isIdle = states.held().length === 0;
    const idleMs = states.allMined().length > 0 ? 4 * timing.pollMs : timing.finalCheckMs;
    await asleep.sleep(isIdle ? idleMs : timing.pollMs);
    // Each accepted transaction wakes this loop. The shortest interval looks up several at once.
    const restMs = SHORTEST_POLL_MS - (time.elapsed() - lookedAt);
    if (restMs > 0) await pause(time, restMs, stopping);
  }

  async function followAll(): Promise<void> {
    const failures: unknown[] = [];
    // A failure must not hold up the others.
    for (const step of [followPending, finality.followMined, finality.followFinal])
      await step().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  async function followPending(): Promise<void> {
    const held = states.held().filter(({ versions }) => versions.some(({ mayBeTaken }) => mayBeTaken));
    if (held.length === 0) return;
    const newest = states.held('pending').at(-1);
    const used = await chain.count(wallet.address, 'latest');
    if (newest !== undefined && newest.nonce >= used) width.minesAtOnce = false;
    nonces.note(used, true);
    if (used < nonces.floor) {
      // The pool counts too: after a reorganisation, transactions wait in it to be mined again. A node that
      // is behind catches up within patienceMs.
      nonces.note(await chain.count(wallet.address, 'pending'));
      if (nonces.lowForMs() >= timing.patienceMs) return resetNonces(parts, used);
    }
    const landed = held.filter(({ nonce }) => nonce < used);
    await findByLogs(landed);
    const judged = await Promise.allSettled(landed.map((pending) => judge(pending)));
    await resend(states.held('pending'), used);
    const failed = judged.find((judgement) => judgement.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Finds mints with one log query. The mints that it misses are looked up by their receipts. */
  async function findByLogs(landed: readonly PendingTransaction[]): Promise<void> {
    if (landed.length < FEWEST_FOR_LOGS) return;
    const from = logsRead;
    const head = await chain.head();
    logsRead = head;
    if (from === undefined || head < from || head - from >= MOST_BLOCKS) return;
    const tokenIds = landed.map(({ mint }) => mint.tokenId);
    const minted = await chain.mintedBetween(from, head, tokenIds).catch(() => new Map<string, MinedMint>());
    for (const { mint } of landed) {
      const mined = minted.get(mint.tokenId);
      if (mined !== undefined) recorder.mined(mint, mined);
    }
  }

  /**
   * Decides about a transaction whose nonce is used. Any transaction that made the token counts. It is
   * certain that none did only at a final block.
   */
  async function judge(pending: PendingTransaction): Promise<void> {
    const { mint, nonce } = pending;
    if (!states.isHeld(pending)) return;
    const ofAll = await chain.verdictOn(mint, mint.transactions);
    if (ofAll.state === 'mined') return recorder.mined(mint, ofAll.mined);
    const own = await chain.verdictOn(mint, pending.versions);
    pending.missingSince ??= time.elapsed();
    // A node may report a new count before it has the receipts.
    if (own.state === 'none' && time.elapsed() - pending.missingSince < timing.patienceMs) return;
    const finalBlock = await chain.finalBlock();
    if (finalBlock < 0 || (await chain.count(wallet.address, finalBlock)) <= nonce) return;
    const mined = (await chain.existsAt(mint.tokenId, finalBlock)) && (await chain.findMint(mint));
    if (mined) return recorder.mined(mint, mined);
    if (mined === undefined || !states.isHeld(pending)) return;
    if (own.state === 'reverted') return judgeReverted(pending, own.hash, own.usedGas);
    if (own.state === 'no token') terms.forgetGas();
    // If the registry is missing, the gas estimate fails next.
    signAnew(parts, pending, own.state === 'none' ? 'somebody else used its nonce' : 'it made no token');
  }

  async function judgeReverted(pending: PendingTransaction, hash: string, usedGas: bigint): Promise<void> {
    const { mint } = pending;
    const limit = pending.versions.find((version) => version.hash === hash)?.gasLimit ?? 0n;
    // A chain may not charge a failed transaction for the state that it would have added.
    const isShort =
      usedGas * 100n >= limit * NEARLY_ALL || (await terms.gasLimit(mint).catch(() => 0n)) > limit;
    if (isShort && mint.estimates++ < MOST_ESTIMATES) {
      terms.forgetGas();
      return signAnew(parts, pending, 'it ran out of gas');
    }
    const cause = await simulate(mint.issuance).catch((refusal: ChainError) => refusal);
    const message = `Transaction ${hash} was mined, but reverted.`;
    const remedy = cause?.remedy ?? 'Send the request again.';
    await giveUp(parts, mint, new ChainError('MINT_REVERTED', message, { cause, remedy }));
  }
}

/**
 * Marks mints as final when their blocks are, and sends those again whose blocks are gone. After a
 * reorganisation of final blocks, the mints that it removed are minted again, because their documents were
 * handed out.
 */
function createMintFinality(parts: QueueParts) {
  const { chain, network, recorder, states, time, timing, wallet } = parts;
  /** When the block of the highest final mint was first missing, by `elapsed`. */
  let goneSince: number | undefined;
  let checkedAt = -Infinity;

  /** Marks mints as final whose blocks are final, and sends those again whose blocks are gone. */
  async function followMined(): Promise<void> {
    const mints = states.allMined();
    if (mints.length === 0) return;
    const finalBlock = await chain.finalBlock();
    const due = mints.filter(({ mined }) => mined !== undefined && mined.block.number <= finalBlock);
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
    mint.goneSince ??= time.elapsed();
    if (time.elapsed() - mint.goneSince < timing.patienceMs) return;
    recorder.unmined(mint);
    states.sendAgain(mint, wallet.address);
  }

  /** Detects a reorganisation of final blocks by the block of the highest final mint. */
  async function followFinal(): Promise<void> {
    const now = time.elapsed();
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
    if (network.local && !(await recorder.enterChain(await chain.originHash()))) return;
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
    for (const unfinished of reopened) states.takeUp(unfinished, wallet.address);
  }

  return { followMined, followFinal };
}
