import { classifyRefusal } from '../chain/classify-refusal';
import { isReverted, nodeErrorOf } from '../chain/refusals';
import { saysTokenExists, simulationFailed } from '../chain/simulate-mint';
import { ChainError } from '../errors';
import { findMint } from './find-mint';
import type { Lane } from './lane-state';
import { park } from './park';
import { canStillBeMined, type Mint } from './mint';
import { failMint, settleMined } from './settle-mint';
import { shortOfFunds } from './short-of-funds';

/** How often a node may refuse to estimate, for a reason that nobody knows. */
const MOST_REFUSALS = 5;
const REFUSED_PAUSE_MS = 1_000;
const MISSING_PAUSE_MS = 500;

/**
 * What follows when a mint's gas cannot be estimated.
 *
 * @returns false when it says nothing about this mint: the node could not be asked.
 */
export async function judgeEstimate(lane: Lane, mint: Mint, cause: unknown): Promise<boolean> {
  if (cause instanceof ChainError) waitForRegistry(lane, mint, cause);
  else if (isReverted(cause)) await failUnlessMade(lane, mint, simulationFailed(cause));
  else if (classifyRefusal(cause) === 'no funds') shortOfFunds(lane, mint, cause);
  else if (nodeErrorOf(cause) === undefined) return false;
  else if (++mint.refusals < MOST_REFUSALS) park(lane, mint, REFUSED_PAUSE_MS);
  else failMint(lane, mint, notSent(cause));
  return true;
}

/**
 * What seems to be refused may be there already: the registry refuses a token that it has, too.
 *
 * @throws ChainError MINT_NOT_CONFIRMED (retryable) when one node says that it has it, and another, which is behind, does not know by which transaction.
 */
export async function failUnlessMade(lane: Lane, mint: Mint, error: ChainError): Promise<void> {
  const { registryAddress, client } = lane;
  const token = { registryAddress, tokenId: mint.issuance.tokenId };
  const hashes = mint.transactions.map(({ hash }) => hash);
  const hash = await findMint(client, token, hashes);
  if (hash !== undefined) settleMined(lane, mint, hash);
  else if (saysTokenExists(error)) throw notTold(mint, error);
  else failMint(lane, mint, error);
}

/**
 * A local chain that was started anew gets its registry some seconds later. Other chains are not replaced: a node that knows no registry any more
 * is being set up, and what was sent may be mined.
 */
function waitForRegistry(lane: Lane, mint: Mint, error: ChainError): void {
  lane.registryMissingSince ??= performance.now();
  const isPatient = performance.now() - lane.registryMissingSince < lane.timing.registryMs;
  if (isPatient || (!lane.network.local && canStillBeMined(mint.transactions, 0)))
    park(lane, mint, MISSING_PAUSE_MS);
  else failMint(lane, mint, error);
}

function notTold({ issuance }: Mint, cause: unknown): ChainError {
  const message = `Token ${issuance.tokenId} exists, but the node does not know it yet.`;
  return new ChainError('MINT_NOT_CONFIRMED', message, { cause, retryable: true });
}

function notSent(cause: unknown): ChainError {
  const message = `Nothing was sent, the mint could not be prepared: ${nodeErrorOf(cause)}`;
  return new ChainError('MINT_NOT_SENT', message, { cause, retryable: true });
}
