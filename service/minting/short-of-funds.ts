import { ChainError } from '../errors';
import { nodeErrorOf } from '../chain/refusals';
import type { Lane } from './lane-state';
import { canStillBeMined, type Mint } from './mint';
import { park } from './park';
import { failMint } from './settle-mint';

const OTHERS_PAUSE_MS = 1_000;

/**
 * The wallet cannot pay for a mint. Nodes count what waits with it: with others in flight, it may be able to when they are mined. Somebody who
 * waits for an answer is told, unless the mint may yet be mined. Then it waits until somebody funds the wallet, and so does one of an earlier run: its
 * document may have been handed out, and who asked for it is gone.
 */
export function shortOfFunds(lane: Lane, mint: Mint, cause: unknown): void {
  const others = lane.inFlight.size + lane.sending.size;
  if (others > 0) return park(lane, mint, OTHERS_PAUSE_MS);
  const isOpen = mint.isRecovered || canStillBeMined(mint.transactions, lane.floor);
  if (!isOpen) return failMint(lane, mint, notFunded(cause));
  if (mint.refusals++ === 0) {
    const { tokenId } = mint.issuance;
    lane.logger.warn({ tokenId, error: notFunded(cause) }, 'mint waits until the wallet is funded');
  }
  park(lane, mint, lane.timing.fundsMs);
}

function notFunded(cause: unknown): ChainError {
  const remedy = 'Fund the wallet of WALLET_PRIVATE_KEY, then send the request again.';
  const message = `The wallet cannot pay for the mint: ${nodeErrorOf(cause)}`;
  return new ChainError('TRANSACTION_REJECTED', message, { cause, remedy });
}
