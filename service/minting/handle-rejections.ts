import { notAccepted, type Broadcast } from '../chain/transactions';
import { nodeErrorOf, type Refusal, classifyRefusal, isDefinite } from '../chain/node-errors';
import { ChainError, messageOf, SignerError } from '../base/errors';
import { type PendingTransaction, type SignedMint, type Mint } from './mint';
import type { QueueParts } from './queue-parts';
import { raiseFees } from './transaction-terms';
import { saysTokenExists } from '../registry/simulate-mint';

/** The facts that decide how a rejected transaction is handled. */
export interface Rejection {
  refusal: Refusal;
  nonce: number;
  /** Whether some node may have the transaction. */
  mayBeTaken: boolean;
  /** Consecutive sends that no node acknowledged, this one included. */
  attempts: number;
  /** How often it was refused like this without another refusal in between, this time included. */
  alike: number;
  /** How often the mint's gas was estimated again. */
  estimates: number;
  /** The node's transaction count for the wallet, including transactions in its pool. */
  pending: number;
  /** Nonces below this one are used; the highest value that any node has reported. */
  floor: number;
  /** Whether nodes have counted less than `floor` for so long that they cannot just be behind. */
  isChainShorter: boolean;
  /** Holder of the nonce `pending` in the queue. */
  pendingHolder: 'nobody' | 'being sent' | 'pending';
}

/**
 * The action for a rejected transaction:
 *
 * - `send again`: send the same bytes once the lower nonces were sent. `send again later`: the same after a
 *   pause, because node and queue disagree, which passes.
 * - `sign anew`: another transaction used the nonce, and no node has this one. `watch`: this transaction may
 *   be the one that used it.
 * - `send those before again`: the node lost transactions that it had accepted.
 * - `fill hole`: the node waits for a nonce that no transaction has; the queue gives it to another mint.
 * - `reset nonces`: the chain is another one, or shorter than before.
 * - `offer more`, `estimate again`: sign with the same nonce and higher fees, or with a new gas limit.
 * - `wait for funds`: the wallet must be funded first. `give up`: the node's refusal stands.
 */
export type Remedy =
  | 'send again'
  | 'send again later'
  | 'sign anew'
  | 'watch'
  | 'send those before again'
  | 'fill hole'
  | 'reset nonces'
  | 'offer more'
  | 'estimate again'
  | 'wait for funds'
  | 'give up';

/** Number of attempts before a refusal that may pass is taken at face value. */
const MOST_ATTEMPTS = 5;
/** How often a mint's gas may be estimated again. */
export const MOST_ESTIMATES = 2;

/** Chooses the action from the node's refusal and its transaction count. */
export function decideRejection(rejection: Rejection): Remedy {
  const { refusal, attempts, alike, nonce, pending, mayBeTaken } = rejection;
  switch (refusal) {
    case 'nonce too low':
    case 'nonce held':
      // Another transaction waits with this nonce. It needs a lower nonce, which only this queue will use.
      if (refusal === 'nonce held' && pending < nonce && rejection.pendingHolder === 'nobody')
        return decideGap(rejection);
      if (pending <= nonce && attempts < MOST_ATTEMPTS) return 'send again later';
      return mayBeTaken ? 'watch' : 'sign anew';
    case 'nonce too high':
      return decideGap(rejection);
    case 'fee too low':
      return alike >= MOST_ATTEMPTS ? 'give up' : 'offer more';
    case 'gas':
      return rejection.estimates < MOST_ESTIMATES ? 'estimate again' : 'give up';
    case 'no funds':
      return 'wait for funds';
    case 'busy':
      return 'send again later';
    case 'other':
      return alike >= MOST_ATTEMPTS ? 'give up' : 'send again later';
  }
}

/** Chooses the action when the node waits for a lower nonce, the one equal to its count. */
function decideGap({ nonce, pending, floor, isChainShorter, pendingHolder, attempts }: Rejection): Remedy {
  if (pending >= nonce || pendingHolder === 'being sent')
    return attempts > 1 ? 'send again later' : 'send again';
  if (pendingHolder === 'pending') return 'send those before again';
  if (pending >= floor) return 'fill hole';
  return isChainShorter ? 'reset nonces' : 'send again later';
}

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
    const newest = pending.newest;
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
    // It may be mined meanwhile. Then its nonce is used, and must not be freed.
    if (!states.isHeld(pending)) return false;
    const refusal = classifyRefusal(cause);
    if (refusal === 'nonce too high') width.refused();
    const { lastRefusal } = pending;
    const alike = lastRefusal?.refusal === refusal ? lastRefusal.times + 1 : 1;
    pending.lastRefusal = { refusal, times: alike };
    const remedy = decideRejection({
      refusal,
      nonce: pending.nonce,
      mayBeTaken: pending.versions.some(({ mayBeTaken }) => mayBeTaken),
      attempts: pending.attempts,
      alike,
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
    const isOfSigner = error instanceof SignerError;
    logRejection(parts, pending, `the ${isOfSigner ? 'signer' : 'node'} cannot be asked`, error);
    // Sent again with the same fees, it would be refused until it is given up.
    if (isOfSigner && states.isHeld(pending)) release(parts, pending);
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
      if (pending.newest.mayBeTaken) states.pending(pending);
      return;
    case 'watch':
      return states.pending(pending);
    case 'sign anew':
      if (classifyRefusal(cause) === 'nonce too low') nonces.raise(nonce + 1);
      signAnew(parts, pending, 'somebody else used its nonce');
      // The ready transactions whose nonces others used too are signed again now. One at a time, this queue
      // would fall behind again.
      for (const ready of states.held('ready'))
        if (ready.nonce < count && !ready.newest.mayBeTaken)
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
      terms.forgetFees(nodeErrorOf(cause));
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
  mint.refusal = notAccepted(nodeErrorOf(cause) ?? messageOf(cause), cause);
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
  const { tokenId } = mint;
  logger.warn({ tokenId, nonce, txHash: pending.newest.hash }, `mint signed again: ${why}`);
  states.wait(mint);
}

/**
 * The node counts fewer transactions than before. If a local chain was started anew, all mints are signed
 * again; on other chains nodes may still have the transactions that were sent.
 */
export async function resetNonces(parts: QueueParts, count: number): Promise<void> {
  const { states, nonces, chain, terms, recorder, logger, network } = parts;
  const isAnother = network.local && (await recorder.leavesOldNonces(await chain.originHash()));
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
 * @throws SignerError when a remote signer fails; any error of the node.
 */
export async function offerMore(
  { terms, recorder }: QueueParts,
  pending: PendingTransaction,
): Promise<SignedMint | undefined> {
  const { nonce, gasLimit, fees: offered } = pending.newest;
  const fees = raiseFees(offered, await terms.fees());
  const signed = fees && (await terms.sign(pending.mint, { nonce, gasLimit, fees }));
  if (signed === undefined) return undefined;
  pending.mint.transactions.push(signed);
  if (!(await recorder.keep([signed]))) return undefined;
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
  const { tokenId } = mint;
  logger.warn({ tokenId, nonce, attempts, reason }, `mint rejected: ${remedy}`);
}

/** Before a mint is tried again that waits for those in flight. */
const OTHERS_PAUSE_MS = 1_000;

/**
 * Marks a mint as failed if that is certain: the token never existed, and at a final block every nonce
 * that could make it is used. Until then the mint is deferred and tried again. The
 * token is looked for first, because the registry also refuses one that exists already.
 *
 * @throws any error of the node.
 */
export async function giveUp(parts: QueueParts, mint: Mint, error: ChainError): Promise<void> {
  const { chain, recorder, states, timing, logger } = parts;
  const { tokenId } = mint;
  const mined = await chain.findMint(mint);
  if (mined !== undefined) return recorder.mined(mint, mined);
  const mayFail = !mint.wasMined && !saysTokenExists(error);
  if (mayFail && !(await mayStillBeMade(parts, mint))) return recorder.failed(mint, error);
  logger.warn({ tokenId, error }, 'mint deferred: it cannot be made now, and may have been made');
  states.defer(mint, timing.patienceMs);
}

/**
 * Whether the token exists, or a sent transaction may still make it. A transaction counts as sent even if
 * every node refused it. All nodes must say so, because a mint that failed is not tried again.
 */
async function mayStillBeMade({ chain }: QueueParts, mint: Mint): Promise<boolean> {
  const possible = mint.transactions.filter(({ wasSent }) => wasSent);
  if (possible.length === 0) return false;
  const finalBlock = await chain.finalBlock();
  if (finalBlock < 0) return true;
  const sure = chain.ofAllNodes();
  for (const wallet of new Set(possible.map(({ from }) => from))) {
    const used = await sure.count(wallet, finalBlock);
    if (possible.some(({ from, nonce }) => from === wallet && nonce >= used)) return true;
  }
  return sure.existsAt(mint.tokenId, finalBlock);
}

/**
 * Handles a mint that the wallet cannot pay for. Nodes count the cost of pending transactions too, so the
 * mint is tried again after those in flight. Without any, its caller gets an error, unless the mint may still
 * be mined. In that case it waits until the wallet is funded. A mint of an earlier run waits too: its
 * document may have been handed out, and its caller is gone.
 */
export async function shortOfFunds(parts: QueueParts, mint: Mint, cause: unknown): Promise<void> {
  const { states, logger, timing } = parts;
  mint.isUnfunded = true;
  if (states.held().some((held) => held.mint !== mint && states.stateOf(held.mint) !== 'ready'))
    return states.defer(mint, OTHERS_PAUSE_MS);
  const error = notFunded(cause);
  if (!mint.isRecovered && !(await mayStillBeMade(parts, mint))) return giveUp(parts, mint, error);
  logger.warn({ tokenId: mint.tokenId, error }, 'mint waits until the wallet is funded');
  states.defer(mint, timing.deferMs);
}

function notFunded(cause: unknown): ChainError {
  const remedy = 'Fund the wallet, then send the request again.';
  const message = `The wallet cannot pay for the mint: ${nodeErrorOf(cause)}`;
  return new ChainError('TRANSACTION_REJECTED', message, { cause, remedy });
}
