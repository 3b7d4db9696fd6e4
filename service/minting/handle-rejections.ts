import { classifyRefusal, isDefinite, type Broadcast, type Refusal } from '../chain/broadcast';
import { nodeErrorOf } from '../chain/refusals';
import { ChainError, messageOf } from '../base/errors';
import { decideRejection, type Remedy } from './decide-rejection';
import { giveUp, shortOfFunds } from './give-up-mints';
import { newestOf, type PendingTransaction, type SignedMint } from './mint';
import type { QueueParts } from './queue-parts';
import { raiseFees } from './transaction-terms';

/** A transaction that no node acknowledged. `wasTaken`: a node may have accepted it before this attempt. */
export interface NotAcknowledged {
  pending: PendingTransaction;
  outcome: Exclude<Broadcast, { state: 'taken' }>;
  wasTaken: boolean;
}

/** Refusals that pass by themselves; they do not count as attempts. */
const PASSING: readonly Refusal[] = ['busy', 'nonce held'];

/**
 * Handles transactions that no node acknowledged, the lowest nonce first. After an indefinite refusal or a
 * broken connection, a node may still have the transaction.
 *
 * @returns whether sending should pause for a moment.
 */
export async function handleRejections(
  parts: QueueParts,
  rejected: readonly NotAcknowledged[],
): Promise<boolean> {
  const { states, network } = parts;
  const inOrder = [...rejected].sort((left, right) => left.pending.nonce - right.pending.nonce);
  // All of them keep their nonces while they are decided one after the other.
  const held = inOrder.filter(({ pending }) => states.isHeld(pending));
  for (const { pending } of held) if (states.stateOf(pending.mint) === 'sending') states.ready(pending);
  let pauses = false;
  for (const { pending, outcome, wasTaken } of held) {
    if (states.stateOf(pending.mint) !== 'ready' || !states.isHeld(pending)) continue;
    const newest = newestOf(pending);
    if (outcome.state === 'open') {
      // A node may have it, so it is watched; it is sent again if it is not mined in time.
      states.pending(pending);
      pending.attempts++;
      logRejection(parts, pending, 'the node did not answer', outcome.cause);
      pauses = true;
      continue;
    }
    // The single node of a local network would say if it had the transaction. On other networks, another node
    // may have it.
    if (isDefinite(outcome.cause)) newest.mayBeTaken = wasTaken && !network.local;
    if (isDefinite(outcome.cause) && network.local) newest.wasSent = false;
    if (!PASSING.includes(classifyRefusal(outcome.cause))) pending.attempts++;
    pauses = (await handleOne(parts, pending, outcome.cause)) || pauses;
  }
  return pauses;
}

/** Returns whether sending should pause for a moment. */
async function handleOne(parts: QueueParts, pending: PendingTransaction, cause: unknown): Promise<boolean> {
  const { nonces, states, chain, wallet, width, timing } = parts;
  try {
    const count = await chain.count(wallet.address, 'pending');
    nonces.note(count);
    const refusal = classifyRefusal(cause);
    if (refusal === 'nonce too high') width.refused();
    const remedy = decideRejection({
      refusal,
      nonce: pending.nonce,
      mayBeTaken: pending.versions.some(({ mayBeTaken }) => mayBeTaken),
      attempts: pending.attempts,
      estimates: pending.mint.estimates,
      pending: count,
      floor: nonces.floor,
      isChainShorter: nonces.lowForMs() >= timing.patienceMs,
      pendingHolder: states.holderOf(count),
    });
    logRejection(parts, pending, remedy, cause);
    await apply(parts, pending, { remedy, cause, count });
    return pending.attempts > 1 || remedy === 'send again later' || remedy === 'fill hole';
  } catch (error) {
    logRejection(parts, pending, 'the node cannot be asked', error);
    return true;
  }
}

/**
 * Applies a remedy. The transaction is `ready` when this is called; a case that does nothing sends it again.
 */
async function apply(
  parts: QueueParts,
  pending: PendingTransaction,
  { remedy, cause, count }: { remedy: Remedy; cause: unknown; count: number },
): Promise<void> {
  const { states, nonces, terms, stopping } = parts;
  const { mint, nonce } = pending;
  switch (remedy) {
    case 'send again':
      return;
    case 'send again later':
      // It may be mined during the pause, so it is watched as pending.
      if (newestOf(pending).mayBeTaken) states.pending(pending);
      return;
    case 'watch':
      return states.pending(pending);
    case 'sign anew':
      if (classifyRefusal(cause) === 'nonce too low') nonces.raise(nonce + 1);
      signAnew(parts, pending, 'somebody else used its nonce');
      // The ready transactions whose nonces others used too are signed again now. One at a time, this queue
      // would fall behind again.
      for (const ready of states.held('ready'))
        if (ready.nonce < count && !newestOf(ready).mayBeTaken)
          signAnew(parts, ready, 'somebody else used its nonce');
      return;
    case 'send those before again':
      for (const before of states.held('pending')) if (before.nonce < nonce) states.ready(before);
      return;
    case 'fill hole':
      nonces.free(count);
      return states.sleeps.preparing.wake();
    case 'reset nonces':
      return resetNonces(parts, count);
    case 'offer more':
      terms.forgetFees();
      if ((await offerMore(parts, pending)) || stopping.aborted) return;
      return refuse(parts, pending, cause);
    case 'estimate again':
      mint.estimates++;
      terms.forgetGas();
      states.wait(mint);
      return nonces.free(nonce);
    case 'wait for funds':
      release(parts, pending);
      return shortOfFunds(parts, mint, cause);
    case 'give up':
      return refuse(parts, pending, cause);
  }
}

/**
 * Refuses a mint and frees its nonce for another one. The mint can fail once that nonce is mined; until then
 * it is tried again and again.
 */
async function refuse(parts: QueueParts, pending: PendingTransaction, cause: unknown): Promise<void> {
  const { mint } = pending;
  const message = `The transaction was not accepted: ${nodeErrorOf(cause) ?? messageOf(cause)}`;
  mint.refusal = new ChainError('TRANSACTION_REJECTED', message, { cause });
  release(parts, pending);
  await giveUp(parts, mint, mint.refusal);
}

function release({ states, nonces, timing }: QueueParts, { mint, nonce }: PendingTransaction): void {
  states.defer(mint, timing.patienceMs);
  nonces.free(nonce);
}

/** Signs a mint again with another nonce. */
export function signAnew({ states, logger }: QueueParts, pending: PendingTransaction, why: string): void {
  const { mint, nonce } = pending;
  const { tokenId } = mint.issuance;
  logger.warn({ tokenId, nonce, txHash: newestOf(pending).hash }, `mint signed again: ${why}`);
  states.wait(mint);
}

/**
 * The node counts fewer transactions than before. If a local chain was started anew, all mints are signed
 * again; on other chains nodes may still have the transactions that were sent.
 */
export async function resetNonces(parts: QueueParts, count: number): Promise<void> {
  const { states, nonces, chain, terms, recorder, logger, network } = parts;
  const isAnother = network.local && !(await recorder.enterChain(await chain.genesisHash()));
  const how = isAnother ? 'nonces are assigned again' : 'the chain is shorter than before';
  logger.warn({ from: nonces.floor, to: count }, `the node counts fewer transactions than before: ${how}`);
  nonces.reset(count);
  terms.forgetGas();
  terms.forgetFees();
  if (!isAnother) return;
  for (const { transactions } of states.unsettled())
    for (const transaction of transactions) transaction.mayBeTaken = transaction.wasSent = false;
  for (const { mint } of states.held()) states.wait(mint);
}

/**
 * Signs a mint with the same nonce and higher fees, as its newest version.
 *
 * @returns undefined where gas is free, and when the queue stops.
 */
export async function offerMore(
  { terms, recorder }: QueueParts,
  pending: PendingTransaction,
): Promise<SignedMint | undefined> {
  const { nonce, gasLimit, fees: offered } = newestOf(pending);
  const fees = raiseFees(offered, await terms.fees());
  const signed = fees && (await terms.sign(pending.mint, { nonce, gasLimit, fees }));
  if (signed === undefined || !(await recorder.keep([signed]))) return undefined;
  pending.versions.push(signed);
  return signed;
}

function logRejection(
  { logger }: QueueParts,
  { mint, nonce, attempts }: PendingTransaction,
  remedy: string,
  cause: unknown,
): void {
  const reason = nodeErrorOf(cause) ?? messageOf(cause);
  const { tokenId } = mint.issuance;
  logger.warn({ tokenId, nonce, attempts, reason }, `mint rejected: ${remedy}`);
}
