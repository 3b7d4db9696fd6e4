import type { Database, Leadership } from '../database/database';
import { ChainError, codeOf, ServiceError } from '../errors';
import type { Logger } from '../logger';
import type { Issuance } from '../journal/issuance';
import type { Journal } from '../journal/journal';
import { scopeName, type JournalScope } from '../journal/journal-scope';
import { pause } from './queue-parts';
import { stoppedMinting, type MintQueue } from './mint-queue';

/** What a shared queue is made of. `openQueue` takes up what is unfinished in the journal. */
export interface SharedMintQueueOptions {
  database: Database;
  journal: Pick<Journal, 'find' | 'signed'>;
  scope: JournalScope;
  logger: Logger;
  openQueue: () => MintQueue;
}

/**
 * How often the right to send is asked for, what other processes added is looked for, and what another sends
 * for this one.
 */
const ASK_EVERY_MS = 2_000;
const LOOK_EVERY_MS = 250;

/**
 * One queue for a journal, however many processes share the database: the one that has the right to send
 * opens it and mints what the others have put into the journal, too; when it dies another takes over. Nonces
 * are given by one process at a time.
 */
export async function startSharedMintQueue(options: SharedMintQueueOptions): Promise<MintQueue> {
  const { database, journal, logger, openQueue } = options;
  const name = `mint:${scopeName(options.scope)}`;
  const stopping = new AbortController();
  let queue: MintQueue | undefined;

  const askToLead = (): Promise<Leadership | undefined> =>
    database.lead(name).catch((error: unknown) => {
      logger.warn({ error }, 'the right to mint cannot be asked for');
      return undefined;
    });

  async function lead(leadership: Leadership): Promise<void> {
    const led = openQueue();
    const handedOver = new Set<string>();
    queue = led;
    while (!stopping.signal.aborted && !leadership.lost.aborted) {
      if (database.engine === 'postgres') await mintForOthers(led, handedOver);
      await pause(LOOK_EVERY_MS, stopping.signal);
    }
    queue = undefined;
    await led.stop();
    await leadership.release();
  }

  /** Each is handed over once: it may take hours to take up the first, when the node is away. */
  async function mintForOthers(led: MintQueue, handedOver: Set<string>): Promise<void> {
    try {
      for (const issuance of await journal.signed()) {
        const { tokenId } = issuance;
        if (handedOver.has(tokenId)) continue;
        handedOver.add(tokenId);
        const ended = (): boolean => handedOver.delete(tokenId);
        led.mint(issuance).then(ended, ended);
      }
    } catch (error) {
      logger.warn({ error }, 'what other processes want minted cannot be read');
    }
  }

  async function run(first: Leadership | undefined): Promise<void> {
    let leadership = first;
    while (!stopping.signal.aborted) {
      if (leadership) await lead(leadership);
      else await pause(ASK_EVERY_MS, stopping.signal);
      leadership = stopping.signal.aborted ? undefined : await askToLead();
    }
    await leadership?.release();
  }

  const running = run(await askToLead());
  return {
    async mint(issuance) {
      while (!stopping.signal.aborted) {
        const led = queue;
        if (led) {
          const hash = await led.mint(issuance).catch((error: unknown) => {
            // The right to send was lost meanwhile: another process goes on.
            const isOurs = led === queue || codeOf(error) !== 'MINT_NOT_CONFIRMED';
            if (isOurs || stopping.signal.aborted) throw error;
            return undefined;
          });
          if (hash !== undefined) return hash;
        }
        const found: Issuance | undefined = await journal.find(issuance.tokenId).catch(() => issuance);
        // It ended, and was removed since.
        if (found === undefined)
          throw new ServiceError(
            'ISSUANCE_UNKNOWN',
            `The issuance of ${issuance.tokenId} was removed meanwhile.`,
          );
        const { state, txHash, failure } = found;
        if ((state === 'mined' || state === 'final') && txHash !== undefined) return txHash;
        if (state === 'failed')
          throw new ChainError(failure?.code ?? 'MINT_NOT_CONFIRMED', failure?.message ?? '');
        await pause(LOOK_EVERY_MS, stopping.signal);
      }
      throw stoppedMinting(issuance.tokenId);
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
