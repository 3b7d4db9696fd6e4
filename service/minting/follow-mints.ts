import { createMintSimulation } from '../registry/simulate-mint';
import { ChainError } from '../base/errors';
import type { MinedMint } from '../journal/issuance';
import { MOST_ESTIMATES } from './decide-rejection';
import { resetNonces, signAnew } from './handle-rejections';
import { createMintFinality } from './mint-finality';
import type { PendingTransaction } from './mint';
import { pause } from '../base/pause';
import type { QueueParts } from './queue-parts';
import { giveUp } from './give-up-mints';
import { createMintResending } from './resend-mints';

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
  const { registryAddress } = terms;
  const simulate = createMintSimulation(client, { registryAddress, walletAddress: wallet.address });
  const resend = createMintResending(parts);
  const finality = createMintFinality(parts);
  /** The newest block at the last log query. */
  let logsRead: number | undefined;

  const asleep = states.sleeps.following;
  let isAway = false;
  while (!stopping.aborted) {
    asleep.reset();
    const lookedAt = performance.now();
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
    const restMs = SHORTEST_POLL_MS - (performance.now() - lookedAt);
    if (restMs > 0) await pause(restMs, stopping);
  }

  async function followAll(): Promise<void> {
    const held = states.held().filter(({ versions }) => versions.some(({ mayBeTaken }) => mayBeTaken));
    // A failure must not hold up the others.
    const steps = [
      () => (held.length > 0 ? followPending(held) : Promise.resolve()),
      () => (states.allMined().length > 0 ? finality.followMined(states.allMined()) : Promise.resolve()),
      () => finality.followFinal(),
    ];
    const failures: unknown[] = [];
    for (const one of steps) await one().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  async function followPending(held: readonly PendingTransaction[]): Promise<void> {
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
    const failed = judged.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Finds mints with one log query. The mints that it misses are looked up by their receipts. */
  async function findByLogs(landed: readonly PendingTransaction[]): Promise<void> {
    if (landed.length < FEWEST_FOR_LOGS) return;
    const from = logsRead;
    const head = await chain.head();
    logsRead = head;
    if (from === undefined || head < from || head - from >= MOST_BLOCKS) return;
    const tokenIds = landed.map(({ mint }) => mint.issuance.tokenId);
    const found = await chain.mintedBetween(from, head, tokenIds).catch(() => new Map<string, MinedMint>());
    for (const { mint } of landed) {
      const mined = found.get(mint.issuance.tokenId);
      if (mined !== undefined) recorder.mined(mint, mined);
    }
  }

  /**
   * Decides about a transaction whose nonce is used. Any transaction that made the token counts. It is
   * certain that none did only at a block with CONFIRMATIONS blocks on top.
   */
  async function judge(pending: PendingTransaction): Promise<void> {
    const { mint, nonce } = pending;
    if (!states.isHeld(pending)) return;
    const ofAll = await chain.verdictOn(mint, mint.transactions);
    if (ofAll.state === 'mined') return recorder.mined(mint, ofAll.mined);
    const own = await chain.verdictOn(mint, pending.versions);
    pending.missingSince ??= performance.now();
    // A node may report a new count before it has the receipts.
    if (own.state === 'none' && performance.now() - pending.missingSince < timing.patienceMs) return;
    const deep = await chain.deep();
    if (deep < 0 || (await chain.count(wallet.address, deep)) <= nonce) return;
    const mined = (await chain.existsAt(mint.issuance.tokenId, deep)) && (await chain.findMint(mint));
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
    if (usedGas * 100n >= limit * NEARLY_ALL && mint.estimates++ < MOST_ESTIMATES) {
      terms.forgetGas();
      return signAnew(parts, pending, 'it ran out of gas');
    }
    const cause = await simulate(mint.issuance).catch((refusal: ChainError) => refusal);
    const message = `Transaction ${hash} was mined, but reverted.`;
    const remedy = cause?.remedy ?? 'Send the request again.';
    await giveUp(parts, mint, new ChainError('MINT_REVERTED', message, { cause, remedy }));
  }
}
