import { createMintSimulation } from '../registry/simulate-mint';
import { ChainError } from '../base/errors';
import type { MinedMint } from '../journal/issuance';
import { resetNonces, signAnew } from './handle-rejections';
import { createMintFinality } from './mint-finality';
import type { PendingTransaction } from './mint';
import { pause, type QueueParts } from './queue-parts';
import { giveUp } from './record-mints';
import { createMintResending } from './resend-mints';

const SHORTEST_POLL_MS = 40;
const MOST_ESTIMATES = 2;
/**
 * Of the gas limit, in hundredths: what used more than that has run out of it. Each call inside keeps a 64th
 * back.
 */
const NEARLY_ALL = 95n;
/** For fewer, their receipts are as cheap as one question for logs. */
const FEWEST_FOR_LOGS = 3;
/** Blocks that every provider answers for. */
const MOST_BLOCKS = 100;

/**
 * Follows all that is pending or mined together: each time one question, how many transactions of the wallet
 * are mined, and then what became of those that must be. What is mined is followed until its block is final;
 * the blocks of final mints are looked at now and then.
 */
export async function followMints(parts: QueueParts): Promise<void> {
  const { chain, client, logger, nonces, recorder, states, stopping, terms, timing, wallet, width } = parts;
  const { registryAddress } = terms;
  const simulate = createMintSimulation(client, { registryAddress, walletAddress: wallet.address });
  const resending = createMintResending(parts);
  const finality = createMintFinality(parts);
  /** The newest block when logs were last read. */
  let logsRead: number | undefined;

  const asleep = states.sleeps.following;
  let isAway = false;
  while (!stopping.aborted) {
    asleep.reset();
    const lookedAt = performance.now();
    try {
      await look();
      isAway = false;
    } catch (error) {
      if (!isAway) logger.warn({ error }, 'mints cannot be followed: the node cannot be asked');
      isAway = true;
      asleep.reset();
    }
    recorder.submitted(states.held('pending'));
    // What is mined changes seldom, and what is final hardly ever.
    const isIdle = states.held().length === 0;
    const idleMs = states.allMined().length > 0 ? 4 * timing.pollMs : timing.finalCheckMs;
    await asleep.sleep(isIdle ? idleMs : timing.pollMs);
    // With many at once, each that is taken wakes: several are looked for together.
    const restMs = SHORTEST_POLL_MS - (performance.now() - lookedAt);
    if (restMs > 0) await pause(restMs, stopping);
  }

  async function look(): Promise<void> {
    const held = states.held().filter(({ versions }) => versions.some(({ mayBeTaken }) => mayBeTaken));
    // What the node does not tell of one mint must not hold up the others.
    const looks = [
      () => (held.length > 0 ? lookAtPending(held) : Promise.resolve()),
      () => (states.allMined().length > 0 ? finality.lookAtMined(states.allMined()) : Promise.resolve()),
      () => finality.lookAtFinal(),
    ];
    const failures: unknown[] = [];
    for (const one of looks) await one().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  async function lookAtPending(held: readonly PendingTransaction[]): Promise<void> {
    const newest = states.held('pending').at(-1);
    const used = await chain.count(wallet.address, 'latest');
    if (newest !== undefined && newest.nonce >= used) width.minesAtOnce = false;
    nonces.note(used, true);
    if (used < nonces.floor) {
      // Not when a node is behind, and not while a reorganisation has put back what waits to be mined again.
      nonces.note(await chain.count(wallet.address, 'pending'));
      if (nonces.lowForMs() >= timing.patienceMs) return resetNonces(parts, used);
    }
    const landed = held.filter(({ nonce }) => nonce < used);
    await findByLogs(landed);
    const judged = await Promise.allSettled(landed.map((pending) => judge(pending)));
    await resending.look(states.held('pending'), used);
    const failed = judged.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Finds mints by one question for logs. Those that it misses are looked up by their receipts. */
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
   * Decides about a transaction whose nonce is used. Whichever transaction made the token counts. When none
   * did, that is certain only at a block that has CONFIRMATIONS blocks on top.
   */
  async function judge(pending: PendingTransaction): Promise<void> {
    const { mint, nonce } = pending;
    if (!states.isHeld(pending)) return;
    const ofAll = await chain.verdictOn(mint, mint.transactions);
    if (ofAll.state === 'mined') return recorder.mined(mint, ofAll.mined);
    const own = await chain.verdictOn(mint, pending.versions);
    pending.missingSince ??= performance.now();
    // A node may tell a count before it has the receipts.
    if (own.state === 'none' && performance.now() - pending.missingSince < timing.patienceMs) return;
    const deep = await chain.deep();
    if (deep < 0 || (await chain.count(wallet.address, deep)) <= nonce) return;
    const mined = (await chain.existsAt(mint.issuance.tokenId, deep)) && (await chain.findMint(mint));
    if (mined) return recorder.mined(mint, mined);
    if (mined === undefined || !states.isHeld(pending)) return;
    if (own.state === 'reverted') return judgeReverted(pending, own.hash, own.usedGas);
    if (own.state === 'no token') terms.forgetGas();
    // Without a registry this fails when its gas is estimated.
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
