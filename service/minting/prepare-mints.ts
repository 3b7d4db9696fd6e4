import { findMint } from './find-mint';
import { giveNonces } from './give-nonces';
import { judgeEstimate } from './judge-estimate';
import { detach, highestHeld, noteCount, pause, putToReady, putToWaiting, type Lane } from './lane-state';
import { newestOf, newFlight, type Flight, type Mint } from './mint';
import { settleMined } from './settle-mint';
import { keep, signMint } from './sign-mint';

/** How many mints are signed and kept in the journal together. */
const BATCH = 16;
/** With fewer ready to be sent, the next are prepared: the last are sent while those are kept. Together they cost one commit and one question. */
const FEWEST_READY = 6;
const IDLE_MS = 60_000;
const NODE_PAUSE_MS = 500;

/** Gives nonces to the mints that wait, signs them and keeps them in the journal, while those before them are being sent. */
export async function prepareMints(lane: Lane): Promise<void> {
  const asleep = lane.sleeps.preparing;
  while (!lane.stopping.aborted) {
    asleep.reset();
    const sleepMs = unpark(lane);
    fillHoles(lane);
    const areNeeded = lane.freed.size > 0 || lane.ready.length < FEWEST_READY;
    const batch = lane.waiting.splice(0, areNeeded ? BATCH : 0);
    if (batch.length === 0) await asleep.sleep(sleepMs);
    else await prepareBatch(lane, batch);
  }
}

/** Takes up again what has waited long enough; gives how long the next has to. */
function unpark(lane: Lane): number {
  const now = performance.now();
  let nextMs = IDLE_MS;
  for (const parked of lane.parked) {
    if (parked.until > now) {
      nextMs = Math.min(nextMs, parked.until - now);
      continue;
    }
    lane.parked.delete(parked);
    putToWaiting(lane, parked.mint);
  }
  return nextMs;
}

/** With nobody waiting for a nonce that was taken back, the last of those that cannot be mined without it takes it. */
function fillHoles(lane: Lane): void {
  if (lane.freed.size === 0 || lane.waiting.length > 0) return;
  const hole = Math.min(...lane.freed);
  const last = lane.ready.at(-1) ?? lastInFlight(lane);
  if (last === undefined || last.nonce < hole) {
    if (lane.sending.size === 0) lane.freed.clear();
    return;
  }
  detach(lane, last);
  if (!newestOf(last).mayBeTaken) lane.freed.add(last.nonce);
  putToWaiting(lane, last.mint);
}

function lastInFlight(lane: Lane): Flight | undefined {
  const nonces = [...lane.inFlight.keys()];
  return nonces.length === 0 ? undefined : lane.inFlight.get(Math.max(...nonces));
}

async function prepareBatch(lane: Lane, batch: readonly Mint[]): Promise<void> {
  const left = new Set(batch);
  try {
    await settleThoseOnChain(lane, left);
    const limits = await limitsOf(lane, left);
    if (left.size > 0) await signBatch(lane, left, limits);
  } catch (error) {
    lane.logger.warn({ error, mints: left.size }, 'mints wait: the node cannot be asked');
    await pause(lane, NODE_PAUSE_MS);
  }
  for (const mint of left) putToWaiting(lane, mint);
}

/** What was sent once may be mined by now, whatever a node said then. */
async function settleThoseOnChain(lane: Lane, left: Set<Mint>): Promise<void> {
  const sent = [...left].filter(({ transactions }) => transactions.length > 0);
  await Promise.all(
    sent.map(async (mint) => {
      const hashes = mint.transactions.map(({ hash }) => hash);
      const { registryAddress } = lane;
      const token = { registryAddress, tokenId: mint.issuance.tokenId };
      const hash = await findMint(lane.client, token, hashes);
      if (hash === undefined) return;
      left.delete(mint);
      settleMined(lane, mint, hash);
    }),
  );
}

/** The gas limits of those that can be minted; the others leave the batch. */
async function limitsOf(lane: Lane, left: Set<Mint>): Promise<Map<Mint, bigint>> {
  const limits = new Map<Mint, bigint>();
  const mints = [...left];
  const estimates = await Promise.allSettled(mints.map(({ issuance }) => lane.gas.limitFor(issuance)));
  for (const [index, mint] of mints.entries()) {
    const estimate = estimates[index];
    if (estimate?.status === 'fulfilled') {
      limits.set(mint, estimate.value);
      lane.registryMissingSince = undefined;
    } else {
      if (!(await judgeEstimate(lane, mint, estimate?.reason))) throw estimate?.reason;
      left.delete(mint);
    }
  }
  return limits;
}

/** Those that are sent leave the batch. */
async function signBatch(lane: Lane, left: Set<Mint>, limits: Map<Mint, bigint>): Promise<void> {
  const { epoch } = lane;
  const [fees, pending] = await Promise.all([
    lane.fees.read(),
    lane.client.getTransactionCount(lane.wallet.address, 'pending'),
  ]);
  noteCount(lane, pending);
  const { floor, freed } = lane;
  const nonces = giveNonces(limits.size, { floor, pending, highestHeld: highestHeld(lane), freed });
  for (const nonce of nonces) {
    lane.preparing.add(nonce);
    freed.delete(nonce);
  }
  for (const nonce of freed) if (nonce < pending) freed.delete(nonce);
  try {
    const flights: Flight[] = [];
    for (const [mint, gasLimit] of limits) {
      const nonce = nonces[flights.length] ?? 0;
      const signed = await signMint(lane, mint, { nonce, gasLimit, fees });
      flights.push(newFlight(mint, [signed]));
    }
    const isKept = await keep(lane, flights.map(newestOf));
    for (const nonce of nonces) lane.preparing.delete(nonce);
    if (!isKept || epoch !== lane.epoch) return;
    for (const flight of flights) {
      left.delete(flight.mint);
      putToReady(lane, flight);
    }
  } finally {
    for (const nonce of nonces) lane.preparing.delete(nonce);
  }
}
