import { ChainError } from '../base/errors';
import { newDeferred, pause, type WakeableSleep } from '../base/time';
import type { Issuance } from '../journal/issuance';
import { createMintFollowing } from './follow-mints';
import { newMint, type MintQueueOptions } from './mint';
import { createMintPreparing } from './prepare-mints';
import { type QueuedMint, QueuedMints } from './queued-mints';
import { createMintSending } from './send-mints';

/**
 * Mints the tokens of one wallet on one chain. Within this service, only this queue sends transactions of the
 * wallet.
 */
export interface MintQueue {
  /**
   * Mints the token of an issuance in the journal. Minting goes on until the mint is final or failed, with or
   * without callers.
   *
   * @returns the hash of the mined transaction.
   * @throws ChainError with the failure's code.
   */
  mint(issuance: Issuance): Promise<string>;
  /** Stops sending. The next start finishes the mints in flight. */
  stop(): Promise<void>;
}

const NODE_PAUSE_MS = 1_000;
/** A node that hangs must not hold up a stop: the journal has everything that is in flight. */
const LONGEST_STOP_MS = 5_000;
/** Each accepted transaction wakes the following. The shortest interval looks up several at once. */
const SHORTEST_POLL_MS = 40;

/**
 * Opens the queue of a wallet. It first takes up the unfinished mints of an earlier run. Every transaction is
 * in the journal before it is sent. Three loops take turns with the mints: one prepares waiting mints, one
 * sends ready transactions, one follows sent ones until they are final.
 */
export function createMintQueue(options: MintQueueOptions): MintQueue {
  const stop = new AbortController();
  const mints = new QueuedMints(options, stop.signal);
  const { sleeps } = mints;
  const recovered = recover(mints);

  async function run(): Promise<void> {
    await recovered;
    const sending = createMintSending(mints);
    await Promise.all([
      takeTurns(sleeps.preparing, createMintPreparing(mints)),
      takeTurns(sleeps.sending, sending.turn).then(sending.finish),
      takeTurns(sleeps.following, createMintFollowing(mints), SHORTEST_POLL_MS),
    ]);
    await mints.finish();
  }

  /** Takes a turn, and sleeps for the milliseconds that it returns, until the queue stops. */
  async function takeTurns(sleep: WakeableSleep, turn: () => Promise<number>, shortestMs = 0): Promise<void> {
    const { time } = options;
    while (!stop.signal.aborted) {
      sleep.reset();
      const begunAt = time.elapsed();
      const sleepMs = await turn();
      if (sleepMs > 0) await sleep.sleep(sleepMs);
      const restMs = shortestMs - (time.elapsed() - begunAt);
      if (restMs > 0) await pause(time, restMs, stop.signal);
    }
  }

  const running = run().catch((error: unknown) => {
    options.logger.fatal({ error }, 'the queue of mints has ended');
  });
  return {
    async mint(issuance) {
      const { state, tokenId, txHash } = issuance;
      if ((state === 'mined' || state === 'final') && txHash !== undefined) return txHash;
      // Mints of an earlier run come first, and this may be one of them.
      await recovered;
      if (stop.signal.aborted) throw stoppedMinting(tokenId);
      return mints.outcomeOf(tokenId) ?? mints.add(newMint(issuance)).outcome.promise;
    },
    async stop() {
      stop.abort();
      for (const sleep of Object.values(sleeps)) sleep.wake();
      const reject = ({ outcome, tokenId }: QueuedMint): void => outcome.reject(stoppedMinting(tokenId));
      // Mints that are being settled may reach the journal during the stop.
      for (const queued of mints.all()) if (queued.mint.state.name !== 'settled') reject(queued);
      const late = newDeferred<void>();
      const cancel = options.time.later(LONGEST_STOP_MS, late.resolve);
      await Promise.race([running, late.promise]);
      cancel();
      mints.all().forEach(reject);
    },
  };
}

/** Takes up the unfinished mints of an earlier run of the service. */
async function recover(mints: QueuedMints): Promise<void> {
  // Read at once: an issuance added after this belongs to this run and has a caller.
  const unfinished = (await mints.persist((journal) => journal.unfinished())) ?? [];
  // A node of another chain knows nothing of the mints, so they would be marked as failed.
  await untilChainIsRight(mints);
  const { logger } = mints.options;
  if (unfinished.length > 0) logger.info({ mints: unfinished.length }, 'mints of an earlier run are resumed');
  for (const mint of unfinished) mints.takeUp(mint);
}

async function untilChainIsRight(mints: QueuedMints): Promise<void> {
  const { stopping, node } = mints;
  const { checkChain, logger, network, time } = mints.options;
  for (let tries = 0; !stopping.aborted; tries++) {
    try {
      await checkChain();
      if (network.local) await mints.enterChain(await node.originHash());
      return;
    } catch (error) {
      if (tries === 0) logger.warn({ error }, 'nothing is minted: the chain cannot be checked');
      await pause(time, NODE_PAUSE_MS, stopping);
    }
  }
}

/** The error for callers of a mint that this process no longer waits for. */
export function stoppedMinting(tokenId: string): ChainError {
  const message =
    `The service stopped while token ${tokenId} was being minted: ` +
    'the mint continues after the next start.';
  const remedy = 'Start the service again; the document is kept.';
  return new ChainError('MINT_NOT_CONFIRMED', message, { remedy });
}
