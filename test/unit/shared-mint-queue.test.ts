import { expect } from 'chai';
import pino from 'pino';
import type { Database } from '../../service/database/database';
import type { Issuance } from '../../service/journal/issuance';
import { newDeferred } from '../../service/base/time';
import { stoppedMinting, type MintQueue } from '../../service/minting/mint-queue';
import { startSharedMintQueue, type SharedMintQueueOptions } from '../../service/minting/shared-mint-queue';
import { SCOPE } from '../helpers/database/prepared-documents';
import { failureOf, newIssuance } from '../helpers/processes/running-mint-queue';
import { VirtualTime } from '../helpers/virtual-time';

describe('a mint queue that several processes share', () => {
  let time: VirtualTime;
  let queue: MintQueue;
  /** The mints that the queue of this process was given. */
  let given: string[];
  /** Ends the right to send. */
  let losing: AbortController;
  let stops: number;
  let releases: number;

  beforeEach(() => {
    given = [];
    losing = new AbortController();
    stops = releases = 0;
    time = new VirtualTime();
  });

  afterEach(() => time.settled(queue.stop()));

  /** Starts the queue of a process; `takeRight` answers whether the process has the right to send. */
  async function start(
    engine: Database['engine'],
    takeRight: () => boolean,
    journal: Partial<SharedMintQueueOptions['journal']>,
  ): Promise<void> {
    const right = { lost: losing.signal, release: async () => void releases++ };
    const database = { engine, takeRight: async () => (takeRight() ? right : undefined) };
    queue = await startSharedMintQueue({
      database: database as unknown as Database,
      journal: { find: async () => undefined, signed: async () => [], ...journal },
      scope: SCOPE,
      logger: pino({ level: 'silent' }),
      time,
      openQueue: () => {
        const stopped = newDeferred<string>();
        stopped.promise.catch(() => undefined);
        return {
          mint: ({ tokenId }) => {
            given.push(tokenId);
            return stopped.promise;
          },
          stop: async () => {
            stops++;
            stopped.reject(stoppedMinting(''));
          },
        };
      },
    });
  }

  it('hands each mint over once, even while none makes progress', async () => {
    const waiting = [newIssuance(), newIssuance()];
    let looks = 0;
    const signed = async (): Promise<Issuance[]> => (looks++, waiting);
    await start('postgres', () => true, { signed });
    await time.until('it looked three times', () => looks >= 3);
    expect(given).to.deep.equal(waiting.map(({ tokenId }) => tokenId));
  });

  it('reads an issuance again when it gets the right to send, and does not mint a failed one', async () => {
    const issuance = newIssuance();
    let isAway = true;
    let asked = 0;
    let afterwards = 0;
    const find = async (): Promise<Issuance> => {
      if (asked > 1) afterwards++;
      if (isAway) throw new Error('the database is away');
      return { ...issuance, state: 'failed', failure: { code: 'MINT_REVERTED', message: 'no' } };
    };
    // At the first request, another process has the right.
    await start('sqlite', () => ++asked > 1, { find });
    const outcome = failureOf(queue.mint(issuance));
    await time.until('it has the right, and looked some times', () => afterwards >= 3);
    isAway = false;
    expect(await time.settled(outcome)).to.include({ code: 'MINT_REVERTED' });
    expect(given).to.deep.equal([]);
  });

  it('stops when it loses its right, and gives all callers the outcome of the next process', async () => {
    const issuance = newIssuance();
    let asked = 0;
    const mined = { ...issuance, state: 'mined', txHash: '0x01' } as const;
    await start('sqlite', () => asked++ === 0, { find: async () => mined });
    const outcomes = Promise.all([queue.mint(issuance), queue.mint(issuance)]);
    await time.until('the queue has the mint', () => given.length > 0);
    losing.abort();
    expect(stops, 'at once').to.equal(1);
    expect(await time.settled(outcomes)).to.deep.equal(['0x01', '0x01']);
    await time.until('it asks for the right again', () => asked > 1);
    expect([given, releases]).to.deep.equal([[issuance.tokenId], 1]);
  });

  it("rejects the wait for another process's mint if its issuance is removed", async () => {
    await start('postgres', () => false, {});
    expect(await time.settled(failureOf(queue.mint(newIssuance())))).to.have.property(
      'code',
      'ISSUANCE_UNKNOWN',
    );
    expect(given).to.deep.equal([]);
  });
});
