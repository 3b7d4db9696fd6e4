// eslint-disable-next-line no-restricted-syntax -- real time: PostgreSQL waits for a lock.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { sql } from 'kysely';
import { codeOf } from '../../service/base/errors';
import { newDeferred } from '../../service/base/time';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import type { IdempotentRequest, MintTransaction, SignedDocument } from '../../service/journal/issuance';
import { mintFiguresOf, type MintFigures } from '../../service/journal/read-issuances';
import { describeOnEngines } from '../helpers/database/engines';
import { collected, mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';

const HOUR_MS = 3_600_000;
const MEGABYTE = 1024 * 1024;
/** Bytes of a part of a document. */
const PART = 262_144;
/** Three parts, the last of them short. */
const LONG = 600_000;
const NOTHING: MintFigures = { waiting: 0, inFlight: 0, mined: 0, oldestAddedAt: undefined };

const REQUEST: IdempotentRequest = { key: 'order-4711', requestHash: 'ab'.repeat(32) };

const transactionOf = (tokenId: string, nonce: number): MintTransaction => ({
  tokenId,
  hash: `0x${tokenId.slice(0, 60)}${String(nonce).padStart(4, '0')}`,
  nonce,
  raw: `0x02f8${nonce}`,
  signedAt: 1_000_000_000 - nonce,
});

describeOnEngines('the journal', (on) => {
  let journal: Journal;
  let now: number;
  const clock = { now: () => now };

  beforeEach(() => {
    now = 1_000_000_000;
    journal = createDatabaseJournal(on.database, SCOPE, clock);
  });

  const rowsOf = async (
    table: 'issuances' | 'document_parts' | 'loose_documents' | 'mint_transactions',
  ): Promise<number> => {
    const rows = on.database.db.selectFrom(table).select(({ fn }) => fn.countAll().as('count'));
    return Number((await rows.executeTakeFirstOrThrow()).count);
  };
  /** Expects that there are so many parts of documents, and none of a document that is noted. */
  const expectParts = async (parts: number): Promise<void> => {
    expect([await rowsOf('document_parts'), await rowsOf('loose_documents')]).to.deep.equal([parts, 0]);
  };
  /** Expects that the journal has these bytes of a document, and so many parts in all. */
  const expectStored = async ({ tokenId, document }: SignedDocument, parts: number): Promise<void> => {
    expect(Buffer.compare(await collected(journal.documentOf(tokenId)), document)).to.equal(0);
    await expectParts(parts);
  };
  const added = async (bytes?: number, request?: IdempotentRequest): Promise<SignedDocument> => {
    const prepared = preparedDocument(bytes);
    expect(await journal.add(prepared, request)).to.include({ tokenId: prepared.tokenId, state: 'signed' });
    return prepared;
  };
  /** Adds an issuance whose mint is in this block; returns its token id. */
  const minedIn = async (number: number, isFinal = false, bytes?: number): Promise<string> => {
    const { tokenId } = await added(bytes);
    await journal.mined(tokenId, mintedBy('0x01', number), isFinal);
    return tokenId;
  };
  const issued = (bytes?: number): Promise<string> => minedIn(7, true, bytes);
  const tokensOf = async (): Promise<string[]> =>
    (await journal.unfinished()).map(({ issuance }) => issuance.tokenId);
  const codeThrownBy = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'nothing',
      (error: unknown) => codeOf(error),
    );

  for (const bytes of [0, 1, PART, PART + 1, LONG])
    it(`keeps a document of ${bytes} bytes`, async () => {
      const prepared = await added(bytes);
      const { document, ...rest } = prepared;
      const none = { txHash: undefined, failure: undefined, requestHash: undefined };
      const found = await journal.find(prepared.tokenId);
      expect(found).to.deep.equal({ ...rest, ...none, state: 'signed', createdAt: now });
      await expectStored({ ...rest, document }, Math.max(1, Math.ceil(bytes / PART)));
    });

  it('follows an issuance until its end, counts it by its state, and reverts no end', async () => {
    const figures = (): Promise<MintFigures> => mintFiguresOf(on.database.db, SCOPE);
    const tokens: string[] = [];
    for (let count = 0; count < 3; count++, now += 1_000) tokens.push((await added()).tokenId);
    const [first = '', second = '', third = ''] = tokens;
    const oldestAddedAt = now - 3_000;
    expect(await figures()).to.deep.equal({ ...NOTHING, waiting: 3, oldestAddedAt });
    await journal.submitted([first, second]);
    expect(await figures()).to.include({ waiting: 1, inFlight: 2 });
    expect(await journal.find(first)).to.include({ state: 'submitted', txHash: undefined });
    await journal.mined(first, mintedBy('0xabc'), false);
    await journal.submitted([first]);
    await journal.failed(first, { code: 'MINT_REVERTED', message: 'mined before' });
    await journal.final([second]);
    const left = { waiting: 1, inFlight: 1, mined: 1, oldestAddedAt: oldestAddedAt + 1_000 };
    expect(await figures()).to.deep.equal(left);
    expect((await journal.signed()).map(({ tokenId }) => tokenId)).to.deep.equal([third]);
    await journal.final([first]);
    await journal.failed(second, { code: 'MINT_REVERTED', message: 'paused' });
    await journal.mined(third, mintedBy('0x03'), true);
    expect(await figures()).to.deep.equal(NOTHING);
    await journal.submitted([first]);
    await journal.failed(first, { code: 'MINT_REVERTED', message: 'too late' });
    expect(await journal.find(first)).to.include({ state: 'final', txHash: '0xabc', failure: undefined });
    expect(await journal.unfinished()).to.deep.equal([]);
    await journal.unmined(third);
    expect(await figures()).to.include({ inFlight: 1, oldestAddedAt: oldestAddedAt + 2_000 });
  });

  for (const bytes of [1_000, LONG])
    it(`keeps why an issuance failed, does not revert that, and removes its ${bytes} bytes`, async () => {
      const [{ tokenId }, other] = [await added(bytes), await added(bytes)];
      const failure = { code: 'MINT_REVERTED' as const, message: 'The registry is paused.' };
      await journal.failed(tokenId, failure);
      const mined = journal.mined(tokenId, mintedBy('0xabc'), true);
      expect(await codeThrownBy(mined)).to.equal('ISSUANCE_UNKNOWN');
      await journal.purge(0);
      expect(await journal.find(tokenId)).to.deep.include({ state: 'failed', failure });
      expect(await journal.documentOf(tokenId)).to.include({ length: 0 });
      expect(await tokensOf()).to.deep.equal([other.tokenId]);
      await expectStored(other, Math.ceil(bytes / PART));
    });

  it('knows no token that was not added', async () => {
    const { tokenId } = preparedDocument();
    expect(await journal.find(tokenId)).to.equal(undefined);
    expect(await journal.documentOf(tokenId)).to.equal(undefined);
    expect(await codeThrownBy(journal.mined(tokenId, mintedBy('0x01'), true))).to.equal('ISSUANCE_UNKNOWN');
  });

  describe('until a mint is final', () => {
    it('lists it as unfinished with its block, and again when that is gone, even a final one', async () => {
      const tokenId = await minedIn(7);
      expect((await journal.unfinished())[0]).to.deep.include({ mined: mintedBy('0x01', 7) });
      expect(await journal.find(tokenId)).to.include({ state: 'mined', txHash: '0x01' });
      expect(await journal.signed()).to.deep.equal([]);
      expect(await journal.purge(now + 1)).to.equal(0);
      for (const isFinal of [false, true]) {
        if (isFinal) await journal.final([tokenId]);
        expect(await tokensOf()).to.have.length(isFinal ? 0 : 1);
        await journal.unmined(tokenId);
        expect(await journal.find(tokenId)).to.include({ state: 'submitted', txHash: '0x01' });
        expect((await journal.unfinished()).map(({ mined }) => mined)).to.deep.equal([undefined]);
        const row = await on.database.db.selectFrom('issuances').select('mined_at').executeTakeFirstOrThrow();
        expect(row.mined_at).to.equal(null);
        await journal.mined(tokenId, mintedBy('0x01', 8), false);
      }
    });

    it('finds final mints by their blocks, from the highest', async () => {
      const tokens = [];
      for (const number of [5, 9, 7, 9]) tokens.push(await minedIn(number, true));
      await minedIn(12);
      expect(await journal.highestFinal()).to.deep.equal(mintedBy('', 9).block);
      expect(await journal.highestFinal(9)).to.deep.equal(mintedBy('', 7).block);
      expect(await journal.highestFinal(5)).to.equal(undefined);
      const since = (await journal.finalSince(7)).map(({ issuance }) => issuance.tokenId);
      expect(since).to.deep.equal([tokens[2], tokens[1], tokens[3]]);
    });

    it('does not look for blocks from before the chain was restarted', async () => {
      expect(await journal.enterChain('0xaa')).to.equal(true);
      const tokenId = await minedIn(9, true);
      expect(await journal.enterChain('0xaa')).to.equal(true);
      expect(await journal.highestFinal()).not.to.equal(undefined);
      expect(await journal.enterChain('0xbb')).to.equal(false);
      expect(await journal.highestFinal()).to.equal(undefined);
      expect(await journal.find(tokenId)).to.include({ state: 'final', txHash: '0x01' });
    });
  });

  it('lists unfinished issuances in the order added, and marks many as submitted', async () => {
    const tokens: string[] = [];
    for (let count = 0; count < 220; count++) {
      tokens.push((await added(10)).tokenId);
      if (count !== 9) continue;
      for (const tokenId of tokens) await journal.mined(tokenId, mintedBy('0x01'), true);
      await journal.purge(now + 1);
    }
    const left = tokens.slice(10);
    await journal.submitted(left);
    expect(await tokensOf()).to.deep.equal(left);
    expect((await journal.unfinished()).map(({ issuance }) => issuance.state)).not.to.include('signed');
  });

  it('keeps the transactions of a document, oldest first, and a batch whole or not at all', async () => {
    const [one, other] = [await added(), await added()];
    const [first, second, third] = [9, 3, 5].map((nonce) => transactionOf(one.tokenId, nonce));
    await journal.keepTransactions([first!, transactionOf(other.tokenId, 4), second!]);
    await journal.keepTransactions([first!, third!]);
    await journal.keepTransactions([]);
    expect((await journal.unfinished()).map(({ transactions }) => transactions)).to.deep.equal([
      [first, second, third],
      [transactionOf(other.tokenId, 4)],
    ]);
    const many = Array.from({ length: 450 }, (_, nonce) => transactionOf(other.tokenId, 1_000 + nonce));
    const broken = { ...transactionOf(other.tokenId, 7), raw: null as unknown as string };
    expect(await codeThrownBy(journal.keepTransactions([...many, broken]))).not.to.equal('nothing');
    expect(await rowsOf('mint_transactions')).to.equal(4);
    await journal.keepTransactions(many);
    expect((await journal.unfinished())[1]?.transactions.slice(1)).to.deep.equal(many);
  });

  it('shows nothing of another issuer, registry or chain', async () => {
    const { tokenId } = await added(10, REQUEST);
    for (const change of [
      { chainId: 1337 },
      { registryAddress: `0x${'cc'.repeat(20)}` },
      { issuer: 'did:web:other.example' },
    ]) {
      const other = createDatabaseJournal(on.database, { ...SCOPE, ...change }, clock);
      expect(await other.find(tokenId)).to.equal(undefined);
      expect(await mintFiguresOf(on.database.db, { ...SCOPE, ...change })).to.deep.equal(NOTHING);
      expect(await other.findByKey(REQUEST.key)).to.equal(undefined);
      expect(await other.unfinished()).to.deep.equal([]);
      const prepared = preparedDocument();
      expect(await other.add(prepared, REQUEST)).to.include({ tokenId: prepared.tokenId });
      expect(await other.purge(now + 1)).to.equal(0);
    }
    const inCapitals = { ...SCOPE, registryAddress: SCOPE.registryAddress.toUpperCase() };
    const same = createDatabaseJournal(on.database, inCapitals, clock);
    expect(await same.find(tokenId)).to.include({ tokenId });
  });

  describe('with an Idempotency-Key', () => {
    it('returns the issuance that has the key, stores nothing more, and frees it if it failed', async () => {
      const one = await added(10, REQUEST);
      const same = { tokenId: one.tokenId, requestHash: REQUEST.requestHash };
      expect(await journal.findByKey(REQUEST.key)).to.include(same);
      const again = await journal.add(preparedDocument(LONG), { ...REQUEST, requestHash: 'other' });
      expect(again).to.include(same);
      expect(await rowsOf('issuances')).to.equal(1);
      await expectParts(1);
      await journal.failed(one.tokenId, { code: 'MINT_REVERTED', message: 'reverted' });
      expect(await journal.findByKey(REQUEST.key)).to.equal(undefined);
      const two = await added(10, REQUEST);
      await journal.mined(two.tokenId, mintedBy('0x01'), true);
      expect(await journal.add(preparedDocument(), REQUEST)).to.include({ tokenId: two.tokenId });
    });

    for (const bytes of [1_000, LONG])
      it(`stores one of many racing documents of ${bytes} bytes, and no part of the others`, async () => {
        const racing = Array.from({ length: 8 }, () => preparedDocument(bytes));
        const journals = racing.map(() => createDatabaseJournal(on.database, SCOPE, clock));
        const answers = await Promise.all(
          racing.map((prepared, index) => journals[index]!.add(prepared, REQUEST)),
        );
        const winner = racing.find(({ tokenId }) => tokenId === answers[0]?.tokenId)!;
        for (const answer of answers) expect(answer).to.include({ tokenId: winner.tokenId });
        await expectStored(winner, Math.ceil(bytes / PART));
      });

    it('gives the key to the next document when the one that had it fails meanwhile', async () => {
      for (let round = 0; round < 5; round++) {
        const [first, second] = [preparedDocument(LONG), preparedDocument(LONG)];
        const failing = journal
          .add(first, REQUEST)
          .then(() => journal.failed(first.tokenId, { code: 'MINT_REVERTED', message: 'x' }));
        const answer = await journal.add(second, REQUEST);
        await failing;
        // Either the first had it when the second came, or the second has it now.
        expect(answer.tokenId).to.equal((await journal.findByKey(REQUEST.key))?.tokenId ?? first.tokenId);
        await journal.failed(second.tokenId, { code: 'MINT_REVERTED', message: 'x' });
      }
    });
  });

  describe('when something fails', () => {
    /** Makes all statements on a table fail. */
    const breakTable = (table: string): Promise<unknown> =>
      sql`alter table ${sql.table(table)} rename to broken`.execute(on.database.db);
    const mendTable = (table: string): Promise<unknown> =>
      sql`alter table broken rename to ${sql.table(table)}`.execute(on.database.db);

    it('keeps no part of a document without an issuance', async () => {
      await breakTable('issuances');
      expect(await codeThrownBy(journal.add(preparedDocument(LONG)))).not.to.equal('nothing');
      await mendTable('issuances');
      now += HOUR_MS + 1;
      await journal.purge(0);
      await expectParts(0);
    });

    for (const bytes of [1_000, LONG])
      it(`knows no issuance, and keeps nothing of its ${bytes} bytes, if it was not committed`, async () => {
        const transact = (): Promise<never> => Promise.reject(new Error('no connection'));
        const failing = createDatabaseJournal({ ...on.database, transact }, SCOPE, clock);
        const prepared = preparedDocument(bytes);
        expect(await codeThrownBy(failing.add(prepared))).not.to.equal('nothing');
        expect(await journal.find(prepared.tokenId)).to.equal(undefined);
        await expectParts(0);
      });

    it('does not take a document for whole that ends early', async () => {
      const { tokenId } = await added(LONG);
      const reading = collected(journal.documentOf(tokenId));
      await on.database.db.deleteFrom('document_parts').where('part', '=', 2).execute();
      expect(await codeThrownBy(reading)).to.equal('DOCUMENT_INCOMPLETE');
    });

    it('keeps a document that is added twice', async () => {
      const prepared = await added(LONG);
      expect(await journal.add(prepared)).to.include({ tokenId: prepared.tokenId });
      now += 2 * HOUR_MS;
      await journal.purge(0);
      await expectStored(prepared, 3);
    });
  });

  describe('purging', () => {
    it('removes only issuances that ended before a time, with parts and transactions', async () => {
      const old = await issued(LONG);
      const failed = await added(10, REQUEST);
      await journal.failed(failed.tokenId, { code: 'MINT_REVERTED', message: 'x' });
      const unfinished = await added(LONG);
      await journal.submitted([unfinished.tokenId]);
      await journal.keepTransactions([transactionOf(old, 1), transactionOf(unfinished.tokenId, 2)]);
      now += 10;
      const recent = await issued();
      expect(await journal.purge(now - 10)).to.equal(0);
      expect(await journal.purge(now, AbortSignal.abort()), 'while the service stops').to.equal(0);
      expect(await journal.purge(now)).to.equal(2);
      for (const tokenId of [old, failed.tokenId]) expect(await journal.find(tokenId)).to.equal(undefined);
      expect(await journal.find(recent)).to.include({ state: 'final' });
      await expectParts(3 + 1);
      expect(await rowsOf('mint_transactions')).to.equal(1);
      expect(await journal.purge(Number.MAX_SAFE_INTEGER)).to.equal(1);
      expect(await tokensOf()).to.deep.equal([unfinished.tokenId]);
      await expectStored(unfinished, 3);
    });

    it('removes more than one batch', async () => {
      for (let count = 0; count < 120; count++) await issued(10);
      expect(await journal.purge(now + 1)).to.equal(120);
      await expectParts(0);
    });

    it('removes an unfinished document of a crash after an hour, and not earlier', async () => {
      const left = preparedDocument(LONG);
      const { db } = on.database;
      const scope = `31337:${SCOPE.registryAddress}:${SCOPE.issuer}`;
      // The rows of a process that died after the first of three parts.
      await db
        .insertInto('loose_documents')
        .values({ scope, token_id: left.tokenId, begun_at: now })
        .execute();
      const part = { scope, token_id: left.tokenId, part: 0, bytes: left.document.subarray(0, PART) };
      await db.insertInto('document_parts').values(part).execute();
      now += HOUR_MS;
      await journal.purge(0);
      expect(await rowsOf('document_parts')).to.equal(1);
      now += 1;
      expect(await journal.purge(0)).to.equal(0);
      await expectParts(0);
    });

    it('interrupts a document with an error that is stored for more than an hour', async () => {
      const slow = preparedDocument(8 * MEGABYTE);
      const [asleep, awake] = [newDeferred<void>(), newDeferred<void>()];
      let statements = 0;
      const db = on.database.db.withPlugin({
        transformQuery: ({ node }) => node,
        async transformResult({ result }) {
          if (++statements === 5) asleep.resolve();
          if (statements === 5) await awake.promise;
          return result;
        },
      });
      const sleeping = createDatabaseJournal({ ...on.database, db }, SCOPE, clock);
      const adding = codeThrownBy(sleeping.add(slow));
      await asleep.promise;
      // The machine slept for two hours.
      now += 2 * HOUR_MS;
      await journal.purge(0);
      awake.resolve();
      expect(await adding).to.equal('STORING_INTERRUPTED');
      expect(await journal.find(slow.tokenId)).to.equal(undefined);
      await expectParts(0);
    });

    it('removes all parts of a document although another process has just removed the first', async () => {
      const { db } = on.database;
      const row = { scope: `31337:${SCOPE.registryAddress}:${SCOPE.issuer}`, token_id: 'ab'.repeat(32) };
      await db
        .insertInto('loose_documents')
        .values({ ...row, begun_at: null })
        .execute();
      const parts = Array.from({ length: 40 }, (_, part) => ({ ...row, part, bytes: new Uint8Array(1) }));
      await db.insertInto('document_parts').values(parts).execute();
      let purged: Promise<number> | undefined;
      await db.transaction().execute(async (other) => {
        await other.deleteFrom('document_parts').where('part', '<', 30).execute();
        purged = journal.purge(0);
        // The purge of PostgreSQL meets the rows, and waits for this transaction.
        await sleep(300);
      });
      await purged;
      await expectParts(0);
    });

    it('removes one issuance on request, unless it is unfinished', async () => {
      const [one, other] = [await issued(LONG), await issued()];
      const unfinished = await added();
      expect(await journal.remove(one)).to.equal('removed');
      expect(await journal.remove(one)).to.equal('unknown');
      expect(await journal.remove(unfinished.tokenId)).to.equal('unfinished');
      expect(await journal.find(other)).not.to.equal(undefined);
      await expectParts(2);
    });
  });

  it('stores 12 MB byte for byte while others are served, and a purge leaves it whole', async () => {
    const prepared = preparedDocument(12 * MEGABYTE);
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    count();
    const adding = journal.add(prepared).finally(() => (isOver = true));
    await added();
    await journal.purge(now);
    expect(await journal.find(prepared.tokenId), 'neither waited').to.equal(undefined);
    await adding;
    expect(turns).to.be.greaterThan(30);
    await expectStored(prepared, 49);
    await journal.mined(prepared.tokenId, mintedBy('0x01'), true);
    await journal.purge(now + 1);
    await expectParts(1);
  });
});
