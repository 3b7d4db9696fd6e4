import { ChainError } from '../base/errors';
import type { Issuance } from '../journal/issuance';
import { followMints } from './follow-mints';
import type { Mint, MintQueueOptions } from './mint';
import { prepareMints } from './prepare-mints';
import { newDeferred, pause } from '../base/time';
import { createQueueParts, type QueueParts } from './queue-parts';
import { sendMints } from './send-mints';

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

/**
 * Opens the queue of a wallet. It first takes up the unfinished mints of an earlier run. Every transaction is
 * in the journal before it is sent. Three loops share the work: one prepares waiting mints, one sends ready
 * transactions, one follows sent ones until they are final.
 */
export function createMintQueue(options: MintQueueOptions): MintQueue {
  const stop = new AbortController();
  const parts = createQueueParts(options, stop.signal);
  const { states, recorder, logger } = parts;
  const recovered = recover(parts, options.checkChain);

  async function run(): Promise<void> {
    await recovered;
    await Promise.all([prepareMints(parts), sendMints(parts), followMints(parts)]);
    await recorder.finish();
  }

  const running = run().catch((error: unknown) => {
    logger.fatal({ error }, 'the queue of mints has ended');
  });
  return {
    async mint(issuance) {
      const { state, tokenId, txHash } = issuance;
      if ((state === 'mined' || state === 'final') && txHash !== undefined) return txHash;
      // Mints of an earlier run come first, and this may be one of them.
      await recovered;
      if (stop.signal.aborted) throw stoppedMinting(tokenId);
      const outcome = states.outcomeOf(tokenId);
      if (outcome !== undefined) return outcome;
      const mint = states.add(issuance, false);
      states.wait(mint);
      return mint.outcome.promise;
    },
    async stop() {
      stop.abort();
      for (const sleep of Object.values(states.sleeps)) sleep.wake();
      const reject = ({ outcome, tokenId }: Mint): void => outcome.reject(stoppedMinting(tokenId));
      // Mints that are being settled may reach the journal during the stop.
      states
        .unsettled()
        .filter((mint) => states.stateOf(mint) !== 'settled')
        .forEach(reject);
      const late = newDeferred<void>();
      const cancel = options.time.later(LONGEST_STOP_MS, late.resolve);
      await Promise.race([running, late.promise]);
      cancel();
      states.unsettled().forEach(reject);
    },
  };
}

/** Takes up the unfinished mints of an earlier run of the service. */
async function recover(parts: QueueParts, checkChain: () => Promise<void>): Promise<void> {
  const { recorder, states, wallet, logger } = parts;
  // Read at once: an issuance added after this belongs to this run and has a caller.
  const unfinished = (await recorder.persist((journal) => journal.unfinished())) ?? [];
  // A node of another chain knows nothing of the mints, so they would be marked as failed.
  await untilChainIsRight(parts, checkChain);
  if (unfinished.length > 0) logger.info({ mints: unfinished.length }, 'mints of an earlier run are resumed');
  for (const mint of unfinished) states.takeUp(mint, wallet.address);
}

async function untilChainIsRight(parts: QueueParts, checkChain: () => Promise<void>): Promise<void> {
  const { stopping, logger, network, recorder, chain, time } = parts;
  for (let tries = 0; !stopping.aborted; tries++) {
    try {
      await checkChain();
      if (network.local) await recorder.enterChain(await chain.originHash());
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
  return new ChainError('MINT_NOT_CONFIRMED', message, { retryable: true, remedy });
}
