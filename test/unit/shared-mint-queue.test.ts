import { expect } from 'chai';
import pino from 'pino';
import type { Database } from '../../service/database/database';
import type { Issuance } from '../../service/journal/issuance';
import { startSharedMintQueue } from '../../service/minting/shared-mint-queue';
import { eventually } from '../helpers/eventually';
import { SCOPE } from '../helpers/database/prepared-documents';
import { newIssuance } from '../helpers/processes/running-mint-queue';

/** A database in which this process has the right to send, or another one. */
function databaseOf(hasRight: boolean): Database {
  const right = { lost: new AbortController().signal, release: async () => undefined };
  return { engine: 'postgres', takeRight: async () => (hasRight ? right : undefined) } as unknown as Database;
}

describe('a mint queue that several processes share', () => {
  it('hands each mint over once, even while none makes progress', async () => {
    const waiting = [newIssuance(), newIssuance()];
    const given: string[] = [];
    let looks = 0;
    const queue = await startSharedMintQueue({
      database: databaseOf(true),
      journal: {
        find: async () => undefined,
        signed: async () => {
          looks++;
          return waiting;
        },
      },
      scope: SCOPE,
      logger: pino({ level: 'silent' }),
      openQueue: () => ({
        mint: async ({ tokenId }) => {
          given.push(tokenId);
          return new Promise<string>(() => undefined);
        },
        stop: async () => undefined,
      }),
    });
    try {
      await eventually('it looked three times', () => looks >= 3);
      expect(given).to.deep.equal(waiting.map(({ tokenId }) => tokenId));
    } finally {
      await queue.stop();
    }
  });

  it('reads an issuance again when it gets the right to send, and does not mint a failed one', async () => {
    const issuance = newIssuance();
    let isAway = true;
    let looks = 0;
    const given: string[] = [];
    const takeRight = async (): Promise<unknown> => {
      // At the first request, another process has the right.
      if (++looks > 1) return { lost: new AbortController().signal, release: async () => undefined };
      return undefined;
    };
    let afterwards = 0;
    const queue = await startSharedMintQueue({
      database: { engine: 'sqlite', takeRight } as unknown as Database,
      journal: {
        find: async () => {
          if (looks > 1) afterwards++;
          if (isAway) throw new Error('the database is away');
          return { ...issuance, state: 'failed', failure: { code: 'MINT_REVERTED', message: 'no' } };
        },
        signed: async () => [],
      },
      scope: SCOPE,
      logger: pino({ level: 'silent' }),
      openQueue: () => ({
        mint: async ({ tokenId }) => {
          given.push(tokenId);
          return '0x';
        },
        stop: async () => undefined,
      }),
    });
    try {
      const outcome = queue.mint(issuance).catch((error: unknown) => error);
      await eventually('it has the right, and looked some times', () => afterwards >= 3);
      isAway = false;
      expect(await outcome).to.include({ code: 'MINT_REVERTED' });
      expect(given).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  });

  it("rejects the wait for another process's mint if its issuance is removed", async () => {
    const issuance = newIssuance();
    let found: Issuance | undefined = issuance;
    const queue = await startSharedMintQueue({
      database: databaseOf(false),
      journal: { find: async () => found, signed: async () => [] },
      scope: SCOPE,
      logger: pino({ level: 'silent' }),
      openQueue: () => expect.fail('another process sends'),
    });
    try {
      const outcome = queue.mint(issuance).catch((error: unknown) => error);
      found = undefined;
      expect(await outcome).to.have.property('code', 'ISSUANCE_UNKNOWN');
    } finally {
      await queue.stop();
    }
  });
});
