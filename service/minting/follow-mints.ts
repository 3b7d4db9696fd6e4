import { ChainError, SignerError } from '../base/errors';
import { pollingMsOf } from '../chain/networks';
import { classifyRefusal, isDefinite, nodeErrorOf } from '../chain/node-errors';
import { broadcast, highestGasPrice, knows } from '../chain/transactions';
import type { BlockId, MinedMint } from '../journal/issuance';
import { createMintSimulation } from '../registry/simulate-mint';
import { MOST_ESTIMATES } from './decide-rejection';
import { giveUp, offerMore, resetNonces, signAnew } from './handle-rejections';
import { heldBy, minedIn, nonceOf, type SignedMint, versionsOf } from './mint';
import type { QueuedMint, QueuedMints } from './queued-mints';

/** A local node may mine ten blocks a second, and polling it is cheap. */
const LOCAL_POLL_MS = 50;
/**
 * Percent of the gas limit: a reverted transaction that used at least this much ran out of gas. Some of the
 * limit stays unused, because each inner call keeps back a 64th (EIP-150).
 */
const NEARLY_ALL = 95n;
/** Below this number, asking for the receipts is as cheap as one log query. */
const FEWEST_FOR_LOGS = 3;
/** A block range that every provider accepts for a log query. */
const MOST_BLOCKS = 100;
/** Before a transaction that was not acknowledged is sent again; doubled each time. */
const FIRST_PAUSE_MS = 100;
/** How often a transaction is replaced although its fees are high enough. */
const MOST_REPLACEMENTS = 5;
/** Before a signer that failed to sign a replacement is asked again. */
const UNSIGNED_PAUSE_MS = 15_000;

/**
 * Follows all pending and mined mints together. Each turn asks how many of the wallet's transactions are
 * mined, and then looks up the mints whose nonces are used. A mined mint is followed until its block is
 * final; the blocks of final mints are checked now and then.
 *
 * @returns the turn, which returns milliseconds until the next.
 */
export function createMintFollowing(mints: QueuedMints): () => Promise<number> {
  const { nonces, node, patienceMs, terms, sleeps } = mints;
  const { client, lifecycle, logger, network, registryAddress, time, wallet } = mints.options;
  const simulate = createMintSimulation(client, { registryAddress, walletAddress: wallet.address });
  const { local } = network;
  /** Between two polls of the chain while a transaction is pending. */
  const pollMs = local ? LOCAL_POLL_MS : pollingMsOf(network);
  /** Between two checks whether the blocks of final mints are still on the chain. */
  const finalCheckMs = local ? 5_000 : 60_000;
  /** The newest block at the last log query. */
  let logsRead: number | undefined;
  /** When the block of the highest final mint was first missing, by `elapsed`. */
  let goneSince: number | undefined;
  let checkedAt = -Infinity;
  let isAway = false;
  /** Between two checks whether the node still has the transaction with the lowest nonce. */
  const presenceMs = network.local ? 1_000 : Math.max(2 * network.blockTimeMs, 10_000);
  /** A transaction that is not mined within this time is replaced: five blocks, and a minute at least. */
  const replaceAfterMs = Math.max(5 * network.blockTimeMs, 60_000);
  /** When a signer last failed to sign a replacement, by `elapsed`. */
  let unsignedAt = -Infinity;
  /** When the node was last asked for the next transaction to be mined, by `elapsed`. */
  let presenceAt = time.elapsed();

  async function turn(): Promise<number> {
    const failures: unknown[] = [];
    // A failure must not hold up the others.
    for (const follow of [followPending, followMined, followFinal])
      await follow().catch((error: unknown) => failures.push(error));
    const [error] = failures;
    if (error !== undefined && !isAway)
      logger.warn({ error }, 'mints cannot be followed: the node cannot be asked');
    isAway = failures.length > 0;
    if (isAway) sleeps.following.reset();
    mints.recordSubmitted();
    if (mints.held().length > 0) return pollMs;
    // Mined mints change seldom, final ones hardly ever.
    return mints.in('mined').length > 0 ? 4 * pollMs : finalCheckMs;
  }

  async function followPending(): Promise<void> {
    const held = mints
      .held()
      .filter(({ mint }) => versionsOf(mint).some(({ reach }) => reach === 'possible'));
    if (held.length === 0) return;
    const newest = mints.held('pending').at(-1);
    const used = await node.count(wallet.address, 'latest');
    if (newest !== undefined && nonceOf(newest.mint) >= used) mints.minesAtOnce = false;
    nonces.note(used, true);
    if (used < nonces.floor) {
      // The pool counts too: after a reorganisation, transactions wait in it to be mined again. A node that
      // is behind catches up within patienceMs.
      nonces.note(await node.count(wallet.address, 'pending'));
      if (nonces.lowForMs() >= patienceMs) return resetNonces(mints, used);
    }
    const landed = held.filter(({ mint }) => heldBy(mint) && nonceOf(mint) < used);
    if (landed.length >= FEWEST_FOR_LOGS) await findByLogs(landed);
    const judged = await Promise.allSettled(landed.map(judge));
    await resend(used);
    const failed = judged.find((judgement) => judgement.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Finds mints with one log query. The mints that it misses are looked up by their receipts. */
  async function findByLogs(landed: readonly QueuedMint[]): Promise<void> {
    const from = logsRead;
    const head = await node.head();
    logsRead = head;
    if (from === undefined || head < from || head - from >= MOST_BLOCKS) return;
    const tokenIds = landed.map(({ tokenId }) => tokenId);
    const minted = await node.mintedBetween(from, head, tokenIds).catch(() => new Map<string, MinedMint>());
    for (const queued of landed) {
      const mined = minted.get(queued.tokenId);
      if (mined !== undefined) mints.found(queued, mined);
    }
  }

  /**
   * Decides about a transaction whose nonce is used. Any transaction that made the token counts. It is
   * certain that none did only at a final block.
   */
  async function judge(queued: QueuedMint): Promise<void> {
    const { mint } = queued;
    const versions = versionsOf(mint);
    const newest = versions.at(-1);
    if (newest === undefined) return;
    const { nonce } = newest;
    const ofAll = await node.verdictOn(mint, mint.transactions);
    if (ofAll.state === 'mined') return mints.found(queued, ofAll.mined);
    const own = await node.verdictOn(mint, versions);
    if (heldBy(queued.mint)?.nonce !== nonce) return;
    mints.observe(queued, { saw: 'no token', at: time.elapsed() });
    const { missingSince = time.elapsed() } = heldBy(queued.mint) ?? {};
    // A node may report a new count before it has the receipts.
    if (own.state === 'none' && time.elapsed() - missingSince < patienceMs) return;
    const finalBlock = await node.finalUseOf(wallet.address, nonce);
    if (finalBlock === undefined) return;
    const mined = (await node.existsAt(queued.tokenId, finalBlock)) && (await node.findMint(queued.mint));
    if (mined) return mints.found(queued, mined);
    if (mined === undefined || heldBy(queued.mint)?.nonce !== nonce) return;
    if (own.state === 'reverted') {
      const limit = versions.find(({ hash }) => hash === own.hash)?.gasLimit ?? 0n;
      return judgeReverted(queued, newest, { ...own, limit });
    }
    if (own.state === 'no token') terms.forgetGas();
    // If the registry is missing, the gas estimate fails next.
    const why = own.state === 'none' ? 'somebody else used its nonce' : 'it made no token';
    signAnew(mints, queued, newest, why);
  }

  async function judgeReverted(
    queued: QueuedMint,
    newest: SignedMint,
    { hash, usedGas, limit }: { hash: string; usedGas: bigint; limit: bigint },
  ): Promise<void> {
    // A chain may not charge a failed transaction for the state that it would have added.
    const isShort =
      usedGas * 100n >= limit * NEARLY_ALL || (await terms.gasLimit(queued.mint).catch(() => 0n)) > limit;
    if (isShort && queued.mint.estimates < MOST_ESTIMATES) {
      terms.forgetGas();
      mints.observe(queued, { saw: 'out of gas' });
      return signAnew(mints, queued, newest, 'it ran out of gas');
    }
    const cause = await simulate(queued.mint.issuance).catch((refusal: ChainError) => refusal);
    const message = `Transaction ${hash} was mined, but reverted.`;
    const remedy = cause?.remedy ?? 'Send the request again.';
    await giveUp(mints, queued, new ChainError('MINT_REVERTED', message, { cause, remedy }));
  }

  /**
   * Sends pending transactions again: those that no node acknowledged, those that nodes lost, and those that
   * are not mined in time.
   */
  async function resend(used: number): Promise<void> {
    const now = time.elapsed();
    const waiting = mints.held('pending').filter(({ mint }) => nonceOf(mint) >= used);
    for (const queued of waiting) {
      const { attempts = 0, sentAt = now } = heldBy(queued.mint) ?? {};
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** attempts, presenceMs);
      if (attempts > 0 && now - sentAt >= pauseMs) mints.observe(queued, { saw: 'unsent' });
    }
    await findLost(waiting, used);
    await replaceOverdue(waiting);
  }

  /**
   * Checks now and then whether the node still has the next transaction to be mined. Lost transactions are
   * sent again with the same bytes: nodes forget pending ones when they restart, when their pool is full, and
   * on command.
   */
  async function findLost(waiting: readonly QueuedMint[], used: number): Promise<void> {
    const [next] = waiting;
    const held = next && heldBy(next.mint);
    const now = time.elapsed();
    if (next === undefined || held === undefined || now - Math.max(held.sentAt, presenceAt) < presenceMs)
      return;
    presenceAt = now;
    if (held.nonce > used) await findHole(held.nonce);
    if (await isKnown(next)) return;
    for (const queued of waiting) {
      const isLost = queued === next || !(await isKnown(queued));
      const newest = versionsOf(queued.mint).at(-1);
      if (!isLost || queued.mint.state.name !== 'pending' || newest === undefined) continue;
      const { nonce, hash: txHash } = newest;
      queued.logger.warn({ nonce, txHash }, 'mint sent again: the node has lost it');
      mints.observe(queued, { saw: 'unsent' });
    }
  }

  async function isKnown({ mint }: QueuedMint): Promise<boolean> {
    const known = await Promise.all(versionsOf(mint).map(({ hash }) => knows(client, hash)));
    return known.includes(true);
  }

  /**
   * The transaction waits for a lower nonce that the queue does not hold. The lower nonce is freed for
   * another mint, because perhaps no other process is about to use it.
   */
  async function findHole(nonce: number): Promise<void> {
    const pending = await node.count(wallet.address, 'pending');
    nonces.note(pending);
    if (pending >= nonce || pending < nonces.floor || mints.holderOf(pending) !== 'nobody') return;
    nonces.free(pending);
    mints.sleeps.preparing.wake();
  }

  /**
   * Replaces transactions that are not mined in time: same mint, same nonce, higher fees. Either version may
   * be mined. A transaction that offers less than the current fees is replaced every time. The next one to be
   * mined is replaced MOST_REPLACEMENTS times even if it offers enough; the ones behind it only wait for it.
   */
  async function replaceOverdue(waiting: readonly QueuedMint[]): Promise<void> {
    const now = time.elapsed();
    const overdue = waiting.filter(({ mint: { state } }) => {
      return state.name === 'pending' && now - Math.max(state.sentAt, nonces.roseAt) >= replaceAfterMs;
    });
    if (overdue.length === 0 || now - unsignedAt < UNSIGNED_PAUSE_MS) return;
    terms.forgetFees();
    const needed = highestGasPrice(await terms.fees());
    for (const [index, queued] of overdue.entries()) {
      const newest = versionsOf(queued.mint).at(-1);
      const isCheap = newest !== undefined && highestGasPrice(newest.fees) < needed;
      const mayRaise = index === 0 && (heldBy(queued.mint)?.replacements ?? 0) < MOST_REPLACEMENTS;
      if (isCheap || mayRaise) await replace(queued);
      // A signer that hangs must not hold up the following of the other mints again and again.
      if (unsignedAt >= now) return;
    }
  }

  async function replace(queued: QueuedMint): Promise<void> {
    // It may be sent again by now, after a transaction with a lower nonce.
    if (queued.mint.state.name !== 'pending') return;
    const replaced = versionsOf(queued.mint).at(-1)?.hash;
    // The next replacement offers more than this one, even if this one is refused.
    const signed = await offerMore(mints, queued).catch((error: unknown) => {
      if (!(error instanceof SignerError)) throw error;
      queued.logger.warn({ nonce: nonceOf(queued.mint), error }, 'mint not replaced: it was not signed');
      unsignedAt = time.elapsed();
    });
    if (!signed) return;
    const { nonce, hash } = signed;
    mints.observe(queued, { saw: 'replaced', at: time.elapsed() });
    const outcome = await broadcast(client, signed.raw);
    const cause = outcome.state === 'taken' ? undefined : outcome.cause;
    if (outcome.state === 'refused' && isDefinite(cause)) mints.observe(queued, { saw: 'denied', hash });
    const refusal = nodeErrorOf(cause);
    if (classifyRefusal(cause) === 'fee too low') terms.forgetFees(refusal);
    const line = { nonce, replaced, txHash: hash, outcome: outcome.state, refusal };
    queued.logger.warn(line, 'mint replaced with a higher fee: it was not mined in time');
  }

  /** Marks mints as final whose blocks are final, and sends those again whose blocks are gone. */
  async function followMined(): Promise<void> {
    const mined = mints.in('mined');
    if (mined.length === 0) return;
    const finalBlock = await node.finalBlock();
    const blockOf = ({ mint }: QueuedMint): BlockId | undefined => minedIn(mint)?.block;
    const due = mined.filter((queued) => (blockOf(queued)?.number ?? Infinity) <= finalBlock);
    // The newest block stands for all blocks below it. Blocks that become final are checked one by one.
    const [newest] = mined.flatMap((queued) => blockOf(queued) ?? []).sort((a, b) => b.number - a.number);
    const areThere = await Promise.all([...due.map(blockOf), newest].map(isThere));
    mints.recordFinal(due.filter((_, index) => areThere[index]));
    const others = mined.filter(({ mint }) => mint.state.name === 'mined');
    if (!areThere.every(Boolean)) await Promise.all(others.map(findAgain));
    else for (const queued of others) mints.observe(queued, { saw: 'block there' });
  }

  /**
   * Handles a mint whose block may be gone. It asks for another block with the token until a node that is
   * behind must have caught up.
   */
  async function findAgain(queued: QueuedMint): Promise<void> {
    const verdict = await node.verdictOn(queued.mint, queued.mint.transactions);
    // A node that is behind still reports the block that is gone.
    if (verdict.state === 'mined' && (await isThere(verdict.mined.block)))
      return mints.found(queued, verdict.mined);
    mints.observe(queued, { saw: 'no block', at: time.elapsed() });
    const { state } = queued.mint;
    if (state.name !== 'mined' || time.elapsed() - (state.goneSince ?? Infinity) < patienceMs) return;
    mints.observe(queued, { saw: 'block gone' });
    mints.placeAnew(queued);
  }

  /**
   * Detects a reorganisation of final blocks by the block of the highest final mint. The mints that it
   * removed are minted again, because their documents were handed out.
   */
  async function followFinal(): Promise<void> {
    const now = time.elapsed();
    if (now - checkedAt < finalCheckMs) return;
    const anchor = await highestFinal();
    checkedAt = now;
    if (anchor === undefined || (await isThere(anchor))) {
      goneSince = undefined;
      return;
    }
    goneSince ??= now;
    const isBehind = (await node.head()) < anchor.number && !local;
    checkedAt = -Infinity;
    if (isBehind || now - goneSince < patienceMs) return;
    goneSince = undefined;
    await reopen(anchor);
  }

  /** The highest block of a final mint, or the highest below block `below`. */
  async function highestFinal(below?: number): Promise<BlockId | undefined> {
    return mints.persist((journal) => journal.highestFinal(below));
  }

  async function isThere(block: BlockId | undefined): Promise<boolean> {
    return block === undefined || (await node.blockHash(block.number)) === block.hash;
  }

  async function reopen(anchor: BlockId): Promise<void> {
    if (local && !(await mints.enterChain(await node.originHash()))) return;
    let since = anchor.number;
    for (let block: BlockId | undefined = anchor; !(await isThere(block));) {
      since = block?.number ?? since;
      block = await highestFinal(since);
    }
    const removed = (await mints.persist((journal) => journal.finalSince(since))) ?? [];
    // The journal calls a mint final until it is sent again: one that was taken up is not counted twice.
    const reopened = removed.filter(({ issuance }) => mints.find(issuance.tokenId) === undefined);
    if (reopened.length === 0) return;
    lifecycle.emit('mints reorganised', reopened.length);
    logger.error({ mints: reopened.length, since }, 'a reorganisation took the blocks of final mints');
    for (const unfinished of reopened) mints.takeUp(unfinished);
  }

  return turn;
}
