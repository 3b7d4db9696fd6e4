import { type Time, pause } from '../base/time';
import type { Database, ExclusiveRight } from '../database/database';
import { ChainError, codeOf, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { type Issuance, mintingRightOf, type JournalScope } from '../journal/issuance';
import type { Journal } from '../journal/journal';
import { stoppedMinting, type MintQueue } from './mint-queue';

/** The parts of a shared queue. `openQueue` takes up the unfinished mints of the journal. */
export interface SharedMintQueueOptions {
  database: Database;
  journal: Pick<Journal, 'find' | 'signed'>;
  scope: JournalScope;
  logger: Logger;
  time: Time;
  openQueue: () => MintQueue;
}

/**
 * Time between two requests for the right to send, and between two looks for documents that other processes
 * added or minted.
 */
const ASK_EVERY_MS = 2_000;
const LOOK_EVERY_MS = 250;

/**
 * Starts the only queue of a journal, however many processes share the database. The process with the right
 * to send opens the queue and also mints what the others added to the journal. When it dies, another takes
 * over. Only the process with the right gives nonces; while the right passes on, two may do so for a moment.
 */
export async function startSharedMintQueue(
  options: SharedMintQueueOptions,
): Promise<MintQueue & { isMinting(): boolean }> {
  const { database, journal, logger, time, openQueue } = options;
  const name = mintingRightOf(options.scope);
  const stopping = new AbortController();
  let queue: MintQueue | undefined;

  const askForRight = (): Promise<ExclusiveRight | undefined> =>
    database.takeRight(name).catch((error: unknown) => {
      logger.warn({ error }, 'the right to mint cannot be requested');
      return undefined;
    });

  async function mintWhileHeld(right: ExclusiveRight): Promise<void> {
    const own = openQueue();
    const handedOver = new Set<string>();
    queue = own;
    const leave = (): Promise<void> => {
      // If the right was lost, callers of unfinished mints wait for the next process that has it.
      queue = undefined;
      return own.stop();
    };
    // The queue stops at once, even while the database hangs: another process may have the right already.
    right.lost.addEventListener('abort', () => void leave(), { once: true });
    while (!stopping.signal.aborted && !right.lost.aborted) {
      if (database.engine === 'postgres') await mintForOthers(own, handedOver);
      await pause(time, LOOK_EVERY_MS, stopping.signal);
    }
    await leave();
    await right.release();
  }

  /**
   * Hands each issuance over once: while the node is away, the queue may take hours to start on the first.
   */
  async function mintForOthers(own: MintQueue, handedOver: Set<string>): Promise<void> {
    try {
      for (const issuance of await journal.signed()) {
        const { tokenId } = issuance;
        if (handedOver.has(tokenId)) continue;
        handedOver.add(tokenId);
        const ended = (): boolean => handedOver.delete(tokenId);
        own.mint(issuance).then(ended, ended);
      }
    } catch (error) {
      logger.warn({ error }, 'the mints of other processes cannot be read');
    }
  }

  async function run(first: ExclusiveRight | undefined): Promise<void> {
    let right = first;
    while (!stopping.signal.aborted) {
      if (right) await mintWhileHeld(right);
      else await pause(time, ASK_EVERY_MS, stopping.signal);
      right = stopping.signal.aborted ? undefined : await askForRight();
    }
    await right?.release();
  }

  /**
   * Waits for the outcome of an issuance. The row is read after `queue`: only the process with the right
   * may mark a mint as failed.
   */
  async function outcomeOf(issuance: Issuance): Promise<string> {
    for (let current: Issuance | undefined = issuance; !stopping.signal.aborted; current = undefined) {
      const own = queue;
      current ??= await readAgain(issuance);
      const { state, txHash, failure } = current ?? issuance;
      if ((state === 'mined' || state === 'final') && txHash !== undefined) return txHash;
      if (state === 'failed')
        throw new ChainError(failure?.code ?? 'MINT_NOT_CONFIRMED', failure?.message ?? '');
      try {
        if (own && current) return await own.mint(current);
      } catch (error) {
        // Otherwise the right to send was lost meanwhile, and another process goes on.
        if (own === queue || codeOf(error) !== 'MINT_NOT_CONFIRMED' || stopping.signal.aborted) throw error;
      }
      await pause(time, LOOK_EVERY_MS, stopping.signal);
    }
    throw stoppedMinting(issuance.tokenId);
  }

  /** Undefined while the journal cannot be read. */
  async function readAgain({ tokenId }: Issuance): Promise<Issuance | undefined> {
    const row = await journal.find(tokenId).catch(() => null);
    if (row !== undefined) return row ?? undefined;
    const message = `The issuance of ${tokenId} ended, and was removed meanwhile.`;
    throw new ServiceError('ISSUANCE_UNKNOWN', message);
  }

  const running = run(await askForRight());
  /** One outcome for all callers that wait for the same token. */
  const outcomes = new Map<string, Promise<string>>();
  return {
    mint(issuance) {
      const { tokenId } = issuance;
      const outcome = outcomes.get(tokenId) ?? outcomeOf(issuance).finally(() => outcomes.delete(tokenId));
      outcomes.set(tokenId, outcome);
      return outcome;
    },
    /** Whether this process has the right to send. */
    isMinting: () => queue !== undefined,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
