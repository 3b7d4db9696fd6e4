import { ChainError } from '../base/errors';
import { nodeErrorOf } from '../chain/refusals';
import { saysTokenExists } from '../registry/simulate-mint';
import type { Mint } from './mint';
import type { QueueParts } from './queue-parts';

/** Before a mint is tried again that waits for those in flight. */
const OTHERS_PAUSE_MS = 1_000;

/**
 * Marks a mint as failed if that is certain: the token never existed, and at a block with CONFIRMATIONS
 * blocks on top every nonce that could make it is used. Until then the mint is deferred and tried again. The
 * token is looked for first, because the registry also refuses one that exists already.
 *
 * @throws any error of the node.
 */
export async function giveUp(parts: QueueParts, mint: Mint, error: ChainError): Promise<void> {
  const { chain, recorder, states, timing, logger } = parts;
  const { tokenId } = mint.issuance;
  const mined = await chain.findMint(mint);
  if (mined !== undefined) return recorder.mined(mint, mined);
  const mayFail = !mint.wasMined && !saysTokenExists(error);
  if (mayFail && !(await mayStillBeMade(parts, mint))) return recorder.failed(mint, error);
  logger.warn({ tokenId, error }, 'mint deferred: it cannot be made now, and may have been made');
  states.defer(mint, timing.patienceMs);
}

/**
 * Whether the token exists, or a sent transaction may still make it. A transaction counts as sent even if
 * every node refused it.
 */
export async function mayStillBeMade({ chain }: QueueParts, mint: Mint): Promise<boolean> {
  const possible = mint.transactions.filter(({ wasSent }) => wasSent);
  if (possible.length === 0) return false;
  const deep = await chain.deep();
  if (deep < 0) return true;
  for (const wallet of new Set(possible.map(({ from }) => from))) {
    const used = await chain.count(wallet, deep);
    if (possible.some(({ from, nonce }) => from === wallet && nonce >= used)) return true;
  }
  return chain.existsAt(mint.issuance.tokenId, deep);
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
  logger.warn({ tokenId: mint.issuance.tokenId, error }, 'mint waits until the wallet is funded');
  states.defer(mint, timing.deferMs);
}

function notFunded(cause: unknown): ChainError {
  const remedy = 'Fund the wallet of WALLET_PRIVATE_KEY, then send the request again.';
  const message = `The wallet cannot pay for the mint: ${nodeErrorOf(cause)}`;
  return new ChainError('TRANSACTION_REJECTED', message, { cause, remedy });
}
