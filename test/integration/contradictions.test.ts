import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import { createLifecycle, type Lifecycle } from '../../service/base/lifecycle';
import { createLogger } from '../../service/base/logger';
import { findNetwork } from '../../service/chain/networks';
import {
  ContradictionCheck,
  startContradictionCheck,
  type ContradictionCheckOptions,
} from '../../service/observability/contradictions';
import { openFeed, type OpenFeed } from '../../service/outbox/feeds';
import { purgeEvents } from '../../service/outbox/purge-events';
import { rewindFeed } from '../../service/outbox/rewind-feed';
import { emptyOutbox } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';
import { tellOfStatements, VirtualTime } from '../helpers/virtual-time';
import { eventIn, record, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';

const MINUTE_MS = 60_000;
const GENESIS = `0x${SAMPLE_FEED.split(':')[2]}${'00'.repeat(24)}`;
const MINT = `0x${'ab'.repeat(32)}`;
const OTHER_MINT = `0x${'cd'.repeat(32)}`;
type FollowedChain = { confirmations?: number; blockTimeMs?: number; startBlock?: number };
/** More rows than one query reads. */
const MANY = 250;
/** More documents than one check compares. */
const OLDER = 6_000;

describeOnEngines('the contradiction check of journal and watcher', (on) => {
  const outbox = emptyOutbox(on);
  let database: Database;
  let journal: Journal;
  let feed: OpenFeed;
  let log: Record<string, unknown>[];
  let counted: number;
  let lifecycle: Lifecycle;
  let now: number;
  let check: ContradictionCheck;
  /** The blocks that the feed was told to read again. */
  let again: number[];
  const time = { ...systemTime, now: () => now };
  const scope = { ...SCOPE, registryAddress: SAMPLE_REGISTRY.registryAddress };

  beforeEach(async () => {
    ({ database, feed } = outbox);
    now = 1_000_000_000;
    log = [];
    counted = 0;
    lifecycle = createLifecycle().on('contradicted', () => counted++);
    again = [];
    journal = createDatabaseJournal(database, scope, time);
    await journal.enterChain(GENESIS);
    check = new ContradictionCheck(options());
  });

  const followed = ({ confirmations = 2, blockTimeMs = 0, startBlock }: FollowedChain = {}) => ({
    confirmations,
    startBlock,
    network: { ...findNetwork('31337')!, blockTimeMs },
  });

  function options(changes: Partial<ContradictionCheckOptions> = {}): ContradictionCheckOptions {
    const destination = { write: (line: string) => void log.push(JSON.parse(line) as (typeof log)[0]) };
    return {
      database,
      scope,
      registry: followed(),
      time,
      logger: createLogger({ level: 'info', mask: (text) => text, destination }),
      lifecycle,
      readAgain: (block) => void again.push(block),
      ...changes,
    };
  }

  /** Adds a document to the journal; returns its token id. */
  async function added(): Promise<string> {
    const prepared = preparedDocument(10);
    await journal.add(prepared);
    return prepared.tokenId;
  }
  async function final(block: number, txHash = MINT): Promise<string> {
    const tokenId = await added();
    await journal.mined(tokenId, mintedBy(txHash, block), true);
    return tokenId;
  }
  /** Adds copies of the newest row of the journal under other token ids; returns these. */
  async function addCopies(count: number): Promise<string[]> {
    const { db } = database;
    const issuances = db.selectFrom('issuances').selectAll().orderBy('position', 'desc').limit(1);
    const row = await issuances.executeTakeFirstOrThrow();
    const copies = Array.from({ length: count }, (_, index) => {
      const token_id = randomBytes(32).toString('hex');
      return { ...row, token_id, position: row.position + 1 + index };
    });
    for (let at = 0; at < count; at += 500)
      await db
        .insertInto('issuances')
        .values(copies.slice(at, at + 500))
        .execute();
    return copies.map(({ token_id }) => token_id);
  }
  async function failed(tokenId: string): Promise<void> {
    await journal.failed(tokenId, { code: 'MINT_REVERTED', message: 'It was paused.' });
  }
  /** Lets the watcher read up to a block, with the mints of these tokens. */
  async function read(
    toBlock: number,
    minted: readonly { tokenId: string; block: number; txHash?: string }[] = [],
  ): Promise<void> {
    const events = minted.map(({ tokenId, block, txHash = MINT }, logIndex) =>
      eventIn(block, BigInt(`0x${tokenId}`), { type: 'minted', transactionHash: txHash, logIndex }),
    );
    await record(database, feed, toBlock, events, now);
  }
  /** Runs the check `times` times, a minute apart. */
  async function look(times = 1): Promise<void> {
    for (let round = 0; round < times; round++) {
      now += MINUTE_MS;
      await check.run();
    }
  }
  /** The database, whose queries fail when they should. */
  const failing = (shouldFail: () => boolean): Database['db'] =>
    new Proxy(database.db, {
      get(target, name, receiver) {
        if (name === 'selectFrom' && shouldFail()) throw new Error('the database is away');
        const value: unknown = Reflect.get(target, name, receiver);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  const told = (): unknown[] =>
    log.map(({ level, tokenId, error }) => [level, (error as { code: string }).code, tokenId]);
  const once = (code: string, tokenId: string): unknown[] => [['error', code, tokenId]];

  it('reports nothing while journal and watcher agree', async () => {
    const [waiting, inFlight, mined, lost] = [await added(), await added(), await added(), await added()];
    await journal.submitted([inFlight]);
    await journal.mined(mined, mintedBy(MINT, 5), false);
    await failed(lost);
    const old = await final(3, OTHER_MINT);
    await read(20, [
      { tokenId: mined, block: 5 },
      { tokenId: old, block: 3, txHash: OTHER_MINT },
      { tokenId: 'ee'.repeat(32), block: 4 },
    ]);
    await look(4);
    await journal.failed(waiting, { code: 'MINT_REVERTED', message: '' });
    await journal.final([mined]);
    await look(4);
    expect(log).to.deep.equal([]);
    expect(counted).to.equal(0);
  });

  it('reports a failed mint whose token exists once, with a remedy', async () => {
    const tokenId = await added();
    await failed(tokenId);
    await read(9, [{ tokenId, block: 7 }]);
    const { db } = database;
    for (const table of ['deliveries', 'queues', 'channels'] as const) await db.deleteFrom(table).execute();
    await look(5);
    expect(told()).to.deep.equal(once('FAILED_MINT_HAS_TOKEN', tokenId));
    expect(log[0]).to.deep.include({
      journal: { state: 'failed', failure: 'MINT_REVERTED' },
      watcher: { minted: [{ txHash: MINT, block: 7 }], nextBlock: 10 },
    });
    expect(log[0]?.error).to.have.property('remedy').that.includes(`npx tdoc token ${tokenId}`);
    expect(counted).to.equal(1);
  });

  it('reports a mint that waits although its token exists, but not one known by the next check', async () => {
    const [tokenId, known] = [await added(), await added()];
    await read(9, [
      { tokenId, block: 7 },
      { tokenId: known, block: 7 },
    ]);
    await look();
    expect(told()).to.deep.equal([]);
    await journal.mined(known, mintedBy(MINT, 7), true);
    await look(3);
    expect(told()).to.deep.equal(once('OPEN_MINT_HAS_TOKEN', tokenId));
  });

  it('reports a contradiction only when it has lasted for the time of CONFIRMATIONS blocks', async () => {
    check = new ContradictionCheck(
      options({ registry: followed({ confirmations: 32, blockTimeMs: 2_000 }) }),
    );
    const tokenId = await added();
    await read(90, [{ tokenId, block: 7 }]);
    await look(2);
    expect(told()).to.deep.equal([]);
    await look();
    expect(told()).to.deep.equal(once('OPEN_MINT_HAS_TOKEN', tokenId));
  });

  it('reads the block of a mint without an event again at once, and reports a lasting one', async () => {
    const tokenId = await final(7);
    const unfinished = await added();
    await journal.mined(unfinished, mintedBy(MINT, 8), false);
    await read(6);
    await look(3);
    expect(again).to.deep.equal([]);
    const transfer = eventIn(7, BigInt(`0x${tokenId}`), { transactionHash: OTHER_MINT, logIndex: 0 });
    await record(database, feed, 7, [transfer], now);
    await look();
    expect(again).to.deep.equal([7]);
    expect(told()).to.deep.equal([]);
    await look(2);
    expect(told()).to.deep.equal(once('MINT_WITHOUT_EVENT', tokenId));
    expect(log[0]).to.deep.include({
      journal: { state: 'final', txHash: MINT, block: 7 },
      watcher: { minted: [], nextBlock: 8 },
    });
    again = [];
    await look();
    expect(new Set(again), 'at each check').to.deep.equal(new Set([7]));
    await read(8);
    await look(3);
    expect(new Set(again)).to.deep.equal(new Set([7, 8]));
    expect(told().slice(1)).to.deep.equal(once('MINT_WITHOUT_EVENT', unfinished));
    expect(counted).to.equal(2);
  });

  it('looks at recent mints of this process as soon as the watcher has passed their blocks', async () => {
    const [seen, lost, later] = [await final(7), await final(7), await final(8)];
    for (const [tokenId, block] of [
      [seen, 7],
      [lost, 7],
      [later, 8],
    ] as const)
      lifecycle.emit('mined', tokenId, block);
    await check.look();
    expect(again).to.deep.equal([]);
    await read(7, [{ tokenId: seen, block: 7 }]);
    await check.look();
    await check.look();
    expect(again).to.deep.equal([7]);
    // The look noted nothing: the first check after it waits for the reading.
    await look();
    expect(told()).to.deep.equal([]);
    await look();
    expect(told()).to.deep.equal(once('MINT_WITHOUT_EVENT', lost));
    again = [];
    await read(8);
    await check.look();
    expect(again).to.deep.equal([8]);
  });

  it('reports a mint that the queue takes back although the watcher sees it, among many', async () => {
    await added();
    await addCopies(MANY);
    const tokenId = await final(7);
    await added();
    await addCopies(MANY);
    await read(9, [{ tokenId, block: 7 }]);
    await look(3);
    await journal.unmined(tokenId);
    await look(2);
    expect(told()).to.deep.equal(once('OPEN_MINT_HAS_TOKEN', tokenId));
  });

  it('reports a token that another transaction minted, and more if the journal names no chain', async () => {
    const tokenId = await final(7);
    await read(9, [{ tokenId, block: 6, txHash: OTHER_MINT }]);
    await look(3);
    expect(told()).to.deep.equal(once('MINTED_BY_ANOTHER_TRANSACTION', tokenId));
    // As on a public network.
    await database.db.deleteFrom('journal_chains').execute();
    const lost = await final(8);
    await look(3);
    expect(told().slice(1)).to.deep.equal(once('MINT_WITHOUT_EVENT', lost));
  });

  it('reports nothing about unknown or orphaned blocks, or those before the first that is read', async () => {
    check = new ContradictionCheck(options({ registry: followed({ startBlock: 8 }) }));
    await final(7);
    const { db } = database;
    const [unknown, orphaned] = [await final(9), await added()];
    const block = { block_number: null, block_hash: null };
    await db.updateTable('issuances').set(block).where('token_id', '=', unknown).execute();
    await read(90, [{ tokenId: orphaned, block: 10 }]);
    await db.updateTable('events').set({ orphaned_at: now }).execute();
    await failed(orphaned);
    await look(3);
    expect(told()).to.deep.equal([]);
  });

  it('ignores a mint whose old event was removed, and reports a later mint', async () => {
    const { db } = database;
    const tokenId = await final(7);
    await read(8, [{ tokenId, block: 7 }]);
    await db
      .updateTable('queues')
      .set((eb) => ({ head: eb('tail', '+', 1), next_attempt_at: null }))
      .execute();
    await db.deleteFrom('blocks').where('number', '<', 8).execute();
    expect(await purgeEvents(systemTime, database, feed.feed, now + 1)).to.equal(1);
    const later = await final(8);
    await read(20);
    await look(3);
    expect(told()).to.deep.equal(once('MINT_WITHOUT_EVENT', later));
  });

  it('does not compare two chains while only one side knows of a restarted chain', async () => {
    const tokenId = await final(7);
    const next = `31337:${SAMPLE_REGISTRY.registryAddress}:fedcba9876543210`;
    await openFeed(database.db, next, 1, now + 1);
    await database.db.updateTable('feeds').set({ next_block: 90 }).where('feed', '=', next).execute();
    await look(3);
    expect(told()).to.deep.equal([]);
    await journal.enterChain(`0xfedcba9876543210${'00'.repeat(24)}`);
    await look(3);
    expect(told()).to.deep.equal([]);
    await journal.mined(tokenId, mintedBy(MINT, 8), true);
    await look(3);
    expect(told()).to.deep.equal(once('MINT_WITHOUT_EVENT', tokenId));
  });

  it('notices a reorganisation that the watcher followed between two checks', async () => {
    const [lost, late] = [await final(7), await added()];
    await failed(late);
    await read(12, [{ tokenId: lost, block: 7 }]);
    await look(3);
    await rewindFeed(database, feed, { number: 0, hash: undefined }, now);
    const transactionHash = OTHER_MINT;
    const event = eventIn(4, BigInt(`0x${late}`), { type: 'minted', transactionHash, logIndex: 0 }, 'b');
    await record(database, feed, 30, [event], now, 'b');
    await look(3);
    expect(told()).to.have.deep.members([
      ...once('MINT_WITHOUT_EVENT', lost),
      ...once('FAILED_MINT_HAS_TOKEN', late),
    ]);
  });

  it('reports a contradiction again when it comes back', async () => {
    const tokenId = await final(7);
    await read(9);
    await look(3);
    await database.db.updateTable('issuances').set({ block_number: null }).execute();
    await look();
    await database.db.updateTable('issuances').set({ block_number: 7 }).execute();
    await journal.unmined(tokenId);
    await journal.mined(tokenId, mintedBy(MINT, 7), true);
    await look(3);
    const again = once('MINT_WITHOUT_EVENT', tokenId);
    expect(told()).to.deep.equal([...again, ...again]);
    expect(counted).to.equal(2);
  });

  it('checks all rows after a start, however many belong to one block', async () => {
    const tokens: string[] = [];
    for (const block of [5, 6]) tokens.push(await final(block), ...(await addCopies(MANY)));
    const openOne = await added();
    await addCopies(MANY);
    const [first = '', last = ''] = [tokens[7], tokens.at(-1)];
    const missing = new Set([first, last]);
    await read(20, [
      ...tokens.filter((one) => !missing.has(one)).map((tokenId) => ({ tokenId, block: 5 })),
      { tokenId: openOne, block: 6 },
    ]);
    now += 100 * MINUTE_MS;
    check = new ContradictionCheck(options());
    await look(3);
    expect(told()).to.have.deep.members([
      ...once('MINT_WITHOUT_EVENT', first),
      ...once('MINT_WITHOUT_EVENT', last),
      ...once('OPEN_MINT_HAS_TOKEN', openOne),
    ]);
  });

  it('compares the newest documents in each check, and the older ones in turn', async () => {
    const older = await added();
    await addCopies(OLDER);
    const newer = await added();
    await read(9, [
      { tokenId: older, block: 7 },
      { tokenId: newer, block: 7 },
    ]);
    await look(2);
    expect(told()).to.deep.equal(once('OPEN_MINT_HAS_TOKEN', newer));
    await look(2);
    expect(told().slice(1)).to.deep.equal(once('OPEN_MINT_HAS_TOKEN', older));
  });

  it('reports a contradiction after a check that failed at any of its statements', async () => {
    let statements = 0;
    let failsAt = 0;
    const db = failing(() => ++statements === failsAt);
    check = new ContradictionCheck(options({ database: { db } }));
    for (let isOver = false, block = 10; !isOver; block += 10) {
      // The watcher lags: when it reads the block, the check has already passed the row in the order of
      // ends.
      const tokenId = await final(block);
      await look(3);
      await read(block + 5);
      [statements, failsAt] = [0, block / 10];
      now += MINUTE_MS;
      await check.run().catch(() => undefined);
      isOver = statements < failsAt;
      [log.length, failsAt] = [0, 0];
      await look(3);
      expect(told(), `after statement ${block / 10} failed`).to.deep.equal(
        once('MINT_WITHOUT_EVENT', tokenId),
      );
    }
  });

  it('runs repeatedly until it is stopped, also after a failed check', async () => {
    const tokenId = await final(7);
    await read(9);
    let failures = 2;
    const db = failing(() => failures-- > 0);
    const passing = new VirtualTime(now);
    tellOfStatements(database, passing);
    const running = startContradictionCheck(options({ database: { db }, time: passing }));
    await passing.until('it is told', () => counted === 1);
    await passing.pass(MINUTE_MS);
    await running.stop();
    const [first, second, third] = log;
    expect([first?.level, second?.level]).to.deep.equal(['warn', 'warn']);
    expect(third).to.deep.include({ level: 'error', tokenId });
    expect(log).to.have.length(3);
    lifecycle.emit('mined', tokenId, 7);
    again = [];
    await passing.pass(3 * MINUTE_MS);
    expect(again).to.deep.equal([]);
  });
});
