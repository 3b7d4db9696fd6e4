import { type ChainError, messageOf } from '../errors';
import type { Failure } from '../journal/issuance';
import { detach, free, pause, track, type Lane } from './lane-state';
import { canStillBeMined, type Flight, type Mint } from './mint';

const JOURNAL_PAUSE_MS = 1_000;
const MOST_REMEMBERED = 10_000;

/** Does something in the journal until it succeeds, or the lane stops: what a database that is away does not note is not lost, only late. */
export async function persist<T>(lane: Lane, work: () => Promise<T>): Promise<T | undefined> {
  while (!lane.stopping.aborted) {
    try {
      return await work();
    } catch (error) {
      lane.logger.error({ error }, 'the journal of mints cannot be used: it is tried again');
      await pause(lane, JOURNAL_PAUSE_MS);
    }
  }
  return undefined;
}

/** Notes in the journal what nodes took and is not mined at once. One note at a time. */
export function noteSubmitted(lane: Lane): void {
  const taken = [...lane.inFlight.values()].map(({ mint }) => mint).filter(({ isNoted }) => !isNoted);
  if (taken.length === 0) return;
  for (const mint of taken) mint.isNoted = true;
  lane.noting = lane.noting.then(async () => {
    const tokenIds = taken.filter(({ isSettled }) => !isSettled).map(({ issuance }) => issuance.tokenId);
    if (tokenIds.length > 0) await persist(lane, () => lane.journal.submitted(tokenIds));
  });
  track(lane, lane.noting);
}

/** The token exists. */
export function settleMined(lane: Lane, mint: Mint, hash: string): void {
  const { tokenId } = mint.issuance;
  settle(lane, mint, async () => {
    await lane.journal.mined(tokenId, hash);
    lane.logger.info({ tokenId, txHash: hash }, 'mint mined');
    mint.outcome.resolve(hash);
  });
}

/**
 * The mint cannot be made. While one of its transactions may yet be mined that would be a lie: it is told once their nonces are used by others.
 */
export function failMint(lane: Lane, mint: Mint, error: ChainError): void {
  const failure = failureOf(lane, error);
  if (!canStillBeMined(mint.transactions, lane.floor)) return settleFailed(lane, mint, failure, error);
  release(lane, mint);
  lane.logger.warn({ tokenId: mint.issuance.tokenId, error }, 'mint given up, unless it is mined yet');
  lane.doomed.add({ mint, failure, error });
  lane.sleeps.watching.wake();
}

/** The token does not exist, and nothing that was sent can make it. */
export function settleFailed(lane: Lane, mint: Mint, failure: Failure, error: Error): void {
  const { tokenId } = mint.issuance;
  settle(lane, mint, async () => {
    await lane.journal.failed(tokenId, failure);
    lane.logger.error({ tokenId, error }, 'mint failed');
    mint.outcome.reject(error);
  });
}

function settle(lane: Lane, mint: Mint, finish: () => Promise<void>): void {
  if (mint.isSettled) return;
  mint.isSettled = true;
  release(lane, mint);
  const work = lane.noting.then(async () => {
    const isNoted = await persist(lane, async () => {
      await finish();
      return true;
    });
    // The lane has stopped, and tells so whoever waits: the next start notes it.
    if (isNoted !== true) return;
    lane.mints.delete(mint.issuance.tokenId);
    remember(lane, mint);
  });
  track(lane, work);
}

function remember({ settled }: Lane, { issuance, outcome }: Mint): void {
  settled.set(issuance.tokenId, outcome.promise);
  for (const [oldest] of settled)
    if (settled.size > MOST_REMEMBERED) settled.delete(oldest);
    else break;
}

/** Takes a mint out of wherever it is. A nonce that no node has heard of goes to another. */
function release(lane: Lane, mint: Mint): void {
  lane.waiting = lane.waiting.filter((one) => one !== mint);
  for (const parked of lane.parked) if (parked.mint === mint) lane.parked.delete(parked);
  for (const doomed of lane.doomed) if (doomed.mint === mint) lane.doomed.delete(doomed);
  const isOf = (flight: Flight): boolean => flight.mint === mint;
  for (const flight of lane.ready.filter(isOf)) {
    detach(lane, flight);
    free(lane, flight.nonce);
  }
  for (const flight of [...lane.inFlight.values()].filter(isOf)) detach(lane, flight);
}

/** With the remedy: whoever reads the journal sees nothing else. Libraries put URLs, with their keys, into messages. */
function failureOf({ mask }: Lane, error: ChainError): Failure {
  const { code, remedy } = error;
  const message = messageOf(error);
  const whole = remedy === undefined || message.includes(remedy) ? message : `${message} ${remedy}`;
  return { code, message: mask(whole) };
}
