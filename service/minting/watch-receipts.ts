import { simulationFailed } from '../chain/simulate-mint';
import { ChainError } from '../errors';
import { findMint, receiptsOf } from './find-mint';
import { failUnlessMade } from './judge-estimate';
import { judgeReceipts, type MintReceipt, type Verdict } from './judge-receipts';
import {
  detach,
  lowForMs,
  noteCount,
  pause,
  putToWaiting,
  raiseFloor,
  signAnew,
  type Lane,
} from './lane-state';
import { canStillBeMined, newestOf, type Flight } from './mint';
import { findLost } from './find-lost';
import { readMade } from './read-made';
import { realign } from './realign';
import { replaceOverdue } from './replace-overdue';
import { noteSubmitted, settleFailed, settleMined } from './settle-mint';

const IDLE_MS = 60_000;
const SHORTEST_POLL_MS = 40;
const MOST_ESTIMATES = 2;
/** Of the gas limit, in hundredths: who used more than that has run out of it. Each call inside keeps a 64th back. */
const NEARLY_ALL = 95n;

/**
 * Watches all that is in flight together: each time one question, how many transactions of the wallet are mined, and then what became of those that must be.
 */
export async function watchReceipts(lane: Lane): Promise<void> {
  const asleep = lane.sleeps.watching;
  let isAway = false;
  while (!lane.stopping.aborted) {
    asleep.reset();
    if (lane.inFlight.size === 0 && lane.doomed.size === 0) {
      await asleep.sleep(IDLE_MS);
      continue;
    }
    const lookedAt = performance.now();
    try {
      await look(lane);
      isAway = false;
    } catch (error) {
      if (!isAway) lane.logger.warn({ error }, 'mints in flight cannot be watched: the node cannot be asked');
      isAway = true;
      asleep.reset();
    }
    noteSubmitted(lane);
    await asleep.sleep(lane.timing.pollMs);
    // With many at once, each that is taken wakes: several are looked for together.
    const restMs = SHORTEST_POLL_MS - (performance.now() - lookedAt);
    if (restMs > 0) await pause(lane, restMs);
  }
}

async function look(lane: Lane): Promise<void> {
  const newest = Math.max(...lane.inFlight.keys());
  const used = await lane.client.getTransactionCount(lane.wallet.address, 'latest');
  lane.minesAtOnce = lane.network.local && used > newest;
  if (used <= newest) lane.width.waits();
  noteCount(lane, used);
  raiseFloor(lane, used);
  if (used < lane.floor && (await isChainShorter(lane))) return realign(lane, used);
  const landed = [...lane.inFlight.values()].filter(({ nonce }) => nonce < used);
  const made = await readMade(lane, landed);
  for (const { mint } of landed) {
    const hash = made.get(mint.issuance.tokenId);
    if (hash !== undefined) settleMined(lane, mint, hash);
  }
  await Promise.all(landed.map((flight) => judge(lane, flight)));
  await settleDoomed(lane);
  await findLost(lane, used);
  await replaceOverdue(lane);
}

/** Not when a node is behind, and not while a reorganisation has put back what waits to be mined again. */
async function isChainShorter(lane: Lane): Promise<boolean> {
  noteCount(lane, await lane.client.getTransactionCount(lane.wallet.address, 'pending'));
  return lowForMs(lane) >= lane.timing.patienceMs;
}

/**
 * Decides about a flight whose nonce is used: by whichever receipt tells of the token, otherwise by its own alone. That an earlier transaction of the mint
 * came to nothing says nothing of this one, whose receipt a node that is behind does not have yet.
 */
async function judge(lane: Lane, flight: Flight): Promise<void> {
  const { mint } = flight;
  if (mint.isSettled) return;
  const { transactions } = mint;
  const hashes = transactions.filter(({ nonce }) => nonce < lane.floor).map(({ hash }) => hash);
  const token = { registryAddress: lane.registryAddress, tokenId: mint.issuance.tokenId };
  const receipts = await receiptsOf(lane.client, hashes);
  if (mint.isSettled) return;
  const isOwn = ({ transactionHash }: MintReceipt): boolean =>
    flight.versions.some(({ hash }) => hash === transactionHash);
  const ofAll = judgeReceipts(receipts, token);
  const verdict = ofAll.state === 'mined' ? ofAll : judgeReceipts(receipts.filter(isOwn), token);
  switch (verdict.state) {
    case 'mined':
      return settleMined(lane, mint, verdict.hash);
    case 'none':
      return judgeMissing(lane, flight);
    case 'reverted':
      return judgeReverted(lane, flight, verdict);
    case 'no token':
      lane.gas.forget();
      detach(lane, flight);
      // Without a registry this fails when its gas is estimated.
      return putToWaiting(lane, mint);
  }
}

/** A node may tell a count before it has the receipts. Otherwise somebody else's transaction has the nonce. */
async function judgeMissing(lane: Lane, flight: Flight): Promise<void> {
  flight.missingSince ??= performance.now();
  if (performance.now() - flight.missingSince < lane.timing.patienceMs) return;
  const { mint } = flight;
  const hashes = mint.transactions.map(({ hash }) => hash);
  const token = { registryAddress: lane.registryAddress, tokenId: mint.issuance.tokenId };
  const hash = await findMint(lane.client, token, hashes);
  if (hash === undefined) signAnew(lane, flight, 'somebody else used its nonce');
  else settleMined(lane, mint, hash);
}

async function judgeReverted(
  lane: Lane,
  flight: Flight,
  { hash, usedGas }: Extract<Verdict, { state: 'reverted' }>,
): Promise<void> {
  const { mint } = flight;
  const { gasLimit } = mint.transactions.find((transaction) => transaction.hash === hash) ?? newestOf(flight);
  if (usedGas * 100n >= gasLimit * NEARLY_ALL && mint.estimates++ < MOST_ESTIMATES) {
    lane.gas.forget();
    return signAnew(lane, flight, 'it ran out of gas');
  }
  await failUnlessMade(lane, mint, await reverted(lane, flight, hash));
}

/** With the reason that the registry gives now. */
async function reverted(lane: Lane, { mint }: Flight, hash: string): Promise<ChainError> {
  const { beneficiary, holder, tokenId, remark } = mint.issuance;
  const cause = await lane.registry.mint
    .staticCall(beneficiary, holder, `0x${tokenId}`, remark)
    .then(() => undefined, simulationFailed);
  const message = `Transaction ${hash} was mined, but reverted.`;
  const remedy = cause?.remedy ?? 'Send the request again.';
  return new ChainError('MINT_REVERTED', message, { cause, remedy });
}

/** What was given up fails once nothing of it can be mined any more. */
async function settleDoomed(lane: Lane): Promise<void> {
  for (const { mint, failure, error } of lane.doomed) {
    if (canStillBeMined(mint.transactions, lane.floor)) continue;
    const hashes = mint.transactions.map(({ hash }) => hash);
    const token = { registryAddress: lane.registryAddress, tokenId: mint.issuance.tokenId };
    const hash = await findMint(lane.client, token, hashes);
    if (hash === undefined) settleFailed(lane, mint, failure, error);
    else settleMined(lane, mint, hash);
  }
}
