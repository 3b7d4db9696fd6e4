import { ChainError, messageOf, SignerError } from '../base/errors';
import { classifyRefusal, isDefinite, nodeErrorOf, type Refusal } from '../chain/node-errors';
import { type Broadcast, notAccepted } from '../chain/transactions';
import { saysTokenExists } from '../registry/simulate-mint';
import type { Remedy } from './decide-rejection';
import { heldBy, nonceOf, type SignedMint, versionsOf } from './mint';
import type { QueuedMint, QueuedMints } from './queued-mints';
import { raiseFees } from './transaction-terms';

/** A transaction that no node acknowledged. `sent`: as it was before this attempt, with its reach. */
export interface NotAcknowledged {
  queued: QueuedMint;
  sent: SignedMint;
  outcome: Exclude<Broadcast, { state: 'taken' }>;
}

/** How long transactions are sent one after the other once a node refused one for its order. */
const NARROW_FOR_MS = 60_000;
/** Refusals that pass by themselves; they do not count as attempts. */
const PASSING: readonly Refusal[] = ['busy', 'nonce held'];

/**
 * Handles transactions that no node acknowledged, the lowest nonce first. After an indefinite refusal or a
 * broken connection, a node may still have the transaction.
 *
 * @returns whether sending should pause for a moment.
 */
export async function handleRejections(
  mints: QueuedMints,
  rejected: readonly NotAcknowledged[],
): Promise<boolean> {
  const isHeld = ({ queued, sent }: NotAcknowledged): boolean =>
    versionsOf(queued.mint).at(-1)?.hash === sent.hash;
  const held = rejected.filter(isHeld).sort((left, right) => left.sent.nonce - right.sent.nonce);
  // All of them keep their nonces while they are decided one after the other. One that has a newer version
  // by now is sent again in that version.
  for (const { queued, sent } of rejected)
    if (queued.mint.state.name === 'sending' && nonceOf(queued.mint) === sent.nonce)
      mints.observe(queued, { saw: 'unsent' });
  let pauses = false;
  for (const one of held)
    if (one.queued.mint.state.name === 'ready' && isHeld(one))
      pauses = (await handleRejection(mints, one)) || pauses;
  return pauses;
}

/** Returns whether sending should pause for a moment. */
async function handleRejection(
  mints: QueuedMints,
  { queued, sent, outcome: { state, cause } }: NotAcknowledged,
): Promise<boolean> {
  const { nonce } = sent;
  const { nonces, node, patienceMs } = mints;
  const { network, wallet, time } = mints.options;
  const refusal = classifyRefusal(cause);
  const isAttempt = state === 'open' || !PASSING.includes(refusal);
  const attempts = (heldBy(queued.mint)?.attempts ?? 0) + (isAttempt ? 1 : 0);
  const reason = nodeErrorOf(cause) ?? messageOf(cause);
  const log = (remedy: string, why = reason): void =>
    queued.logger.warn({ nonce, attempts, reason: why }, `mint rejected: ${remedy}`);
  if (state === 'open') {
    // A node may have it, so it is watched; it is sent again if it is not mined in time.
    mints.observe(queued, { saw: 'open' });
    log('the node did not answer');
    return true;
  }
  // The single node of a local network would say if it had the transaction. On other networks, another node
  // may have it.
  const denied = network.local ? 'none' : sent.reach === 'possible' ? 'possible' : 'refused';
  const reach = isDefinite(cause) ? denied : 'possible';
  const isHeld = (): boolean => heldBy(queued.mint)?.nonce === nonce;
  const error = notAccepted(reason, cause);
  const until = time.elapsed() + patienceMs;
  try {
    const count = await node.count(wallet.address, 'pending');
    nonces.note(count);
    // It may be mined meanwhile. Then its nonce is used, and must not be freed.
    if (!isHeld()) return false;
    if (refusal === 'nonce too high') mints.narrowUntil = time.elapsed() + NARROW_FOR_MS;
    const remedy = mints.observe(queued, {
      saw: 'refused',
      refusal,
      attempts,
      reach,
      pending: count,
      floor: nonces.floor,
      isChainShorter: nonces.lowForMs() >= patienceMs,
      pendingHolder: mints.holderOf(count),
      error,
      until,
    });
    if (remedy === undefined) return false;
    log(remedy);
    await carryOut(mints, queued, { remedy, sent, count, error, cause });
    return attempts > 1 || remedy === 'send again later' || remedy === 'fill hole';
  } catch (failure) {
    if (reach !== 'possible') mints.observe(queued, { saw: 'denied', hash: sent.hash });
    const isOfSigner = failure instanceof SignerError;
    log(`the ${isOfSigner ? 'signer' : 'node'} cannot be asked`, nodeErrorOf(failure) ?? messageOf(failure));
    // Sent again with the same fees, it would be refused until it is given up.
    if (isOfSigner && isHeld()) mints.defer(queued, patienceMs);
    return true;
  }
}

interface Refused {
  remedy: Remedy;
  sent: SignedMint;
  /** The node's transaction count. */
  count: number;
  error: ChainError;
  cause: unknown;
}

/** Does what is left to do after a refusal, once the mint has its next state. */
async function carryOut(mints: QueuedMints, queued: QueuedMint, refused: Refused): Promise<void> {
  const { nonces, patienceMs, stopping, terms } = mints;
  const { remedy, sent, count, error, cause } = refused;
  const { nonce } = sent;
  switch (remedy) {
    case 'send again':
    case 'send again later':
    case 'watch':
      return;
    case 'sign anew':
      if (classifyRefusal(cause) === 'nonce too low') nonces.raise(nonce + 1);
      signAnew(mints, queued, sent, 'somebody else used its nonce');
      // The ready transactions whose nonces others used too are signed again now. One at a time, this queue
      // would fall behind again.
      for (const ready of mints.held('ready')) {
        const newest = versionsOf(ready.mint).at(-1);
        if (newest !== undefined && newest.nonce < count && newest.reach !== 'possible')
          signAnew(mints, ready, newest, 'somebody else used its nonce');
      }
      return;
    case 'send those before again':
      for (const before of mints.held('pending'))
        if (nonceOf(before.mint) < nonce) mints.observe(before, { saw: 'unsent' });
      return;
    case 'fill hole':
      nonces.free(count);
      return mints.sleeps.preparing.wake();
    case 'reset nonces':
      return resetNonces(mints, count);
    case 'offer more': {
      terms.forgetFees(nodeErrorOf(cause));
      if ((await offerMore(mints, queued)) || stopping.aborted) return;
      if (nonceOf(queued.mint) !== nonce) return;
      const until = mints.options.time.elapsed() + patienceMs;
      if (mints.observe(queued, { saw: 'no way', error, until }) === undefined) return;
      return carryOut(mints, queued, { ...refused, remedy: 'give up' });
    }
    case 'estimate again':
      return terms.forgetGas();
    case 'wait for funds':
      return shortOfFunds(mints, queued, cause);
    case 'give up':
      // The mint can fail once its nonce is mined; until then it is tried again and again.
      return giveUp(mints, queued, error);
  }
}

/** Signs a mint again with another nonce. `former`: its newest transaction. */
export function signAnew(mints: QueuedMints, queued: QueuedMint, former: SignedMint, why: string): void {
  const { nonce, hash: txHash } = former;
  queued.logger.warn({ nonce, txHash }, `mint signed again: ${why}`);
  mints.observe(queued, { saw: 'no nonce' });
}

/**
 * The node counts fewer transactions than before. If a local chain was started anew, all mints are signed
 * again; on other chains nodes may still have the transactions that were sent.
 */
export async function resetNonces(mints: QueuedMints, count: number): Promise<void> {
  const { nonces, node, terms } = mints;
  const { logger, network } = mints.options;
  const isAnother = network.local && (await mints.leavesOldNonces(await node.originHash()));
  const how = isAnother ? 'nonces are assigned again' : 'the chain is shorter than before';
  logger.warn({ from: nonces.floor, to: count }, `the node counts fewer transactions than before: ${how}`);
  nonces.reset(count);
  terms.forgetGas();
  terms.forgetFees();
  for (const queued of isAnother ? mints.all() : []) mints.observe(queued, { saw: 'another chain' });
}

/**
 * Signs a mint with the same nonce and higher fees, as its newest version.
 *
 * @returns undefined where gas is free, when the queue stops, and when the mint has left its nonce meanwhile.
 * @throws SignerError when a remote signer fails; any error of the node.
 */
export async function offerMore(mints: QueuedMints, queued: QueuedMint): Promise<SignedMint | undefined> {
  const { terms } = mints;
  const newest = versionsOf(queued.mint).at(-1);
  const before = heldBy(queued.mint)?.name;
  const fees = newest && raiseFees(newest.fees, await terms.fees());
  const signed = fees && (await terms.sign(queued.mint, { ...newest, fees }));
  if (signed === undefined) return undefined;
  await mints.persist((journal) => journal.keepTransactions([signed]));
  if (mints.stopping.aborted) return undefined;
  const held = heldBy(queued.mint);
  // This version was never sent. A node may have been given the former one again.
  if (held?.nonce !== signed.nonce || held.name !== before) return undefined;
  mints.observe(queued, { saw: 'signed', transaction: signed });
  return signed;
}

/** Before a mint is tried again that waits for those in flight. */
const OTHERS_PAUSE_MS = 1_000;
/** Before a mint that the wallet cannot pay for is tried again. */
const UNFUNDED_PAUSE_MS = 15_000;

/**
 * Marks a mint as failed if that is certain: the token never existed, and at a final block every nonce
 * that could make it is used. Until then the mint is deferred and tried again. The
 * token is looked for first, because the registry also refuses one that exists already.
 *
 * @throws any error of the node.
 */
export async function giveUp(mints: QueuedMints, queued: QueuedMint, error: ChainError): Promise<void> {
  const mined = await mints.node.findMint(queued.mint);
  if (mined !== undefined) return mints.found(queued, mined);
  const mayFail = queued.mint.issuance.txHash === undefined && !saysTokenExists(error);
  if (mayFail && !(await mayStillBeMade(mints, queued))) {
    mints.observe(queued, { saw: 'failure', error });
    return;
  }
  queued.logger.warn({ error }, 'mint deferred: it cannot be made now, and may have been made');
  mints.defer(queued, mints.patienceMs);
}

/**
 * Whether the token exists, or a sent transaction may still make it. A transaction counts as sent even if
 * every node refused it. All nodes must say so, because a mint that failed is not tried again.
 */
async function mayStillBeMade({ node }: QueuedMints, { mint, tokenId }: QueuedMint): Promise<boolean> {
  const possible = mint.transactions.filter(({ reach }) => reach !== 'none');
  if (possible.length === 0) return false;
  const finalBlock = await node.finalBlock();
  if (finalBlock < 0) return true;
  const sure = node.ofAllNodes();
  for (const wallet of new Set(possible.map(({ from }) => from))) {
    const used = await sure.count(wallet, finalBlock);
    if (possible.some(({ from, nonce }) => from === wallet && nonce >= used)) return true;
  }
  return sure.existsAt(tokenId, finalBlock);
}

/**
 * Handles a mint that the wallet cannot pay for. Nodes count the cost of pending transactions too, so the
 * mint is tried again after those in flight. Without any, its caller gets an error, unless the mint may still
 * be mined. In that case it waits until the wallet is funded. A mint of an earlier run waits too: its
 * document may have been handed out, and its caller is gone.
 */
export async function shortOfFunds(mints: QueuedMints, queued: QueuedMint, cause: unknown): Promise<void> {
  mints.observe(queued, { saw: 'no funds' });
  if (mints.held('sending', 'pending').some((held) => held !== queued))
    return mints.defer(queued, OTHERS_PAUSE_MS);
  const error = notFunded(cause);
  if (!queued.mint.isRecovered && !(await mayStillBeMade(mints, queued))) return giveUp(mints, queued, error);
  queued.logger.warn({ error }, 'mint waits until the wallet is funded');
  mints.defer(queued, UNFUNDED_PAUSE_MS);
}

function notFunded(cause: unknown): ChainError {
  const remedy = 'Fund the wallet, then send the request again.';
  const message = `The wallet cannot pay for the mint: ${nodeErrorOf(cause)}`;
  return new ChainError('TRANSACTION_REJECTED', message, { cause, remedy });
}
