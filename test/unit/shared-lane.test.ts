import { expect } from 'chai';
import pino from 'pino';
import type { Database } from '../../service/database/database';
import type { Issuance } from '../../service/journal/issuance';
import { startSharedLane } from '../../service/minting/shared-lane';
import { eventually } from '../helpers/eventually';
import { SCOPE } from '../helpers/prepared-documents';
import { newIssuance } from '../helpers/running-lane';

/** Where another process has the right to send, or this one. */
function databaseOf(leads: boolean): Database {
  const leadership = { lost: new AbortController().signal, release: async () => undefined };
  return { engine: 'postgres', lead: async () => (leads ? leadership : undefined) } as unknown as Database;
}

describe('a lane that several processes share', () => {
  it('gives the lane each mint once, also while the node is away and none of them gets on', async () => {
    const waiting = [newIssuance(), newIssuance()];
    const given: string[] = [];
    let looks = 0;
    const lane = await startSharedLane({
      database: databaseOf(true),
      journal: {
        find: async () => undefined,
        unfinished: async () => {
          looks++;
          return waiting.map((issuance) => ({ issuance, transactions: [] }));
        },
      },
      scope: SCOPE,
      logger: pino({ level: 'silent' }),
      openLane: () => ({
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
      await lane.stop();
    }
  });

  it('ends the waiting for a mint of another process when its issuance is removed', async () => {
    const issuance = newIssuance();
    let found: Issuance | undefined = issuance;
    const lane = await startSharedLane({
      database: databaseOf(false),
      journal: { find: async () => found, unfinished: async () => [] },
      scope: SCOPE,
      logger: pino({ level: 'silent' }),
      openLane: () => expect.fail('another process sends'),
    });
    try {
      const outcome = lane.mint(issuance).catch((error: unknown) => error);
      found = undefined;
      expect(await outcome).to.have.property('code', 'ISSUANCE_UNKNOWN');
    } finally {
      await lane.stop();
    }
  });
});
