import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Leadership } from '../database/database';
import { ChainError, ServiceError } from '../errors';
import type { Logger } from '../logger';
import type { Issuance } from '../journal/issuance';
import type { Journal, JournalScope } from '../journal/journal';
import { stoppedMinting, type MintLane } from './mint-lane';

/** What a shared lane is made of. `openLane` takes up what is unfinished in the journal. */
export interface SharedLaneOptions {
  database: Database;
  journal: Pick<Journal, 'find' | 'unfinished'>;
  scope: JournalScope;
  logger: Logger;
  openLane: () => MintLane;
}

/** How often the right to send is asked for, what others added is looked for, and what another sends for us is looked at. */
const ASK_EVERY_MS = 2_000;
const LOOK_EVERY_MS = 250;

/**
 * One lane for a wallet, however many processes share the database: the one that has the right to send opens it and mints what the others have put into the
 * journal, too; when it dies another takes over. Nonces are given by one process at a time.
 */
export async function startSharedLane(options: SharedLaneOptions): Promise<MintLane> {
  const { database, journal, logger, openLane } = options;
  const name = nameOf(options.scope);
  const stopping = new AbortController();
  let lane: MintLane | undefined;

  const askToLead = (): Promise<Leadership | undefined> =>
    database.lead(name).catch((error: unknown) => {
      logger.warn({ error }, 'the right to mint cannot be asked for');
      return undefined;
    });

  async function lead(leadership: Leadership): Promise<void> {
    const led = openLane();
    const handedOver = new Set<string>();
    lane = led;
    try {
      while (!stopping.signal.aborted && !leadership.lost.aborted) {
        if (database.engine === 'postgres') await mintForOthers(led, handedOver);
        await pause(LOOK_EVERY_MS, [stopping.signal, leadership.lost]);
      }
    } finally {
      lane = undefined;
      await led.stop();
      await leadership.release();
    }
  }

  /** What this process mints already is not begun again. The lane is given each once: it may take hours to take up the first, when the node is away. */
  async function mintForOthers(led: MintLane, handedOver: Set<string>): Promise<void> {
    try {
      for (const { issuance } of await journal.unfinished()) {
        const { tokenId } = issuance;
        if (handedOver.has(tokenId)) continue;
        handedOver.add(tokenId);
        const ended = (): boolean => handedOver.delete(tokenId);
        led.mint(issuance).then(ended, ended);
      }
    } catch (error) {
      logger.warn({ error }, 'what others want minted cannot be read');
    }
  }

  async function run(first: Leadership | undefined): Promise<void> {
    let leadership = first;
    while (!stopping.signal.aborted) {
      if (leadership) await lead(leadership);
      else await pause(ASK_EVERY_MS, [stopping.signal]);
      leadership = stopping.signal.aborted ? undefined : await askToLead();
    }
    await leadership?.release();
  }

  const running = run(await askToLead());
  return {
    async mint(issuance) {
      let current = issuance;
      while (!stopping.signal.aborted) {
        const led = lane;
        if (led) {
          const hash = await led.mint(issuance).catch((error: unknown) => {
            // The right to send was lost meanwhile: another process goes on.
            if (led === lane || stopping.signal.aborted || !isStopped(error)) throw error;
            return undefined;
          });
          if (hash !== undefined) return hash;
        }
        const last: Issuance = current;
        const found = await journal.find(issuance.tokenId).catch(() => last);
        // It was mined or failed, and removed since.
        if (found === undefined) throw removed(issuance.tokenId);
        current = found;
        const { state, txHash, failure } = current;
        if (state === 'mined' && txHash !== undefined) return txHash;
        if (state === 'failed')
          throw new ChainError(failure?.code ?? 'MINT_NOT_CONFIRMED', failure?.message ?? '');
        await pause(LOOK_EVERY_MS, [stopping.signal]);
      }
      throw stoppedMinting(issuance.tokenId);
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function nameOf({ chainId, registryAddress, walletAddress }: JournalScope): string {
  return `mint:${chainId}:${registryAddress}:${walletAddress}`.toLowerCase();
}

function isStopped(error: unknown): boolean {
  return error instanceof ChainError && error.code === 'MINT_NOT_CONFIRMED';
}

function removed(tokenId: string): ServiceError {
  return new ServiceError('ISSUANCE_UNKNOWN', `The issuance of token ${tokenId} was removed meanwhile.`);
}

/** Until the time is over, or one of the signals aborts. Signals that live as long as the process keep what AbortSignal.any makes of them. */
async function pause(ms: number, signals: AbortSignal[]): Promise<void> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  for (const signal of signals) signal.addEventListener('abort', end);
  if (signals.some(({ aborted }) => aborted)) end();
  await sleep(ms, undefined, { signal: ended.signal }).catch(() => undefined);
  for (const signal of signals) signal.removeEventListener('abort', end);
}
