import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { sql } from 'kysely';
import { codeOf } from '../../service/base/errors';
import type { PreparedDocument } from '../../service/issuance/prepare-document';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import type { IdempotentRequest, MintTransaction } from '../../service/journal/issuance';
import { describeOnEngines } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { collected, mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';

const HOUR_MS = 3_600_000;
const MEGABYTE = 1024 * 1024;
/** Three parts, the last of them short. */
const LONG = 600_000;

const REQUEST: IdempotentRequest = { key: 'order-4711', requestHash: 'ab'.repeat(32) };

const transactionOf = (tokenId: string, nonce: number): MintTransaction => ({
  tokenId,
  hash: `0x${tokenId.slice(0, 60)}${String(nonce).padStart(4, '0')}`,
  nonce,
  raw: `0x02f8${nonce}`,
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
  /** Expects that the journal has these bytes of a document. */
  const expectStored = async ({ tokenId, document }: PreparedDocument): Promise<void> => {
    expect(Buffer.compare(await collected(journal.documentOf(tokenId)), document)).to.equal(0);
  };
  const expectNoLooseDocuments = async (): Promise<void> => {
    expect(await rowsOf('loose_documents')).to.equal(0);
  };
  /** Adds an issuance that is final; returns its token id. */
  const issued = async (bytes?: number): Promise<string> => {
    const prepared = preparedDocument(bytes);
    await journal.add(prepared);
    await journal.mined(prepared.tokenId, mintedBy('0x01'), true);
    return prepared.tokenId;
  };
  const tokensOf = async (): Promise<string[]> =>
    (await journal.unfinished()).map(({ issuance }) => issuance.tokenId);
  const codeThrownBy = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'nothing',
      (error: unknown) => codeOf(error),
    );

  for (const bytes of [0, 1, 262_144, 262_145, LONG]) {
    it(`keeps a document of ${bytes} bytes`, async () => {
      const prepared = preparedDocument(bytes);
      expect(await journal.add(prepared)).to.equal(undefined);
      const { document, ...rest } = prepared;
      expect(await journal.find(prepared.tokenId)).to.deep.equal({
        ...rest,
        state: 'signed',
        txHash: undefined,
        failure: undefined,
        requestHash: undefined,
        createdAt: now,
      });
      await expectStored({ ...rest, document });
      await expectNoLooseDocuments();
    });
  }

  it('does not know a token that was not added', async () => {
    const { tokenId } = preparedDocument();
    expect(await journal.find(tokenId)).to.equal(undefined);
    expect(await journal.documentOf(tokenId)).to.equal(undefined);
    expect(await codeThrownBy(journal.mined(tokenId, mintedBy('0x01'), true))).to.equal('ISSUANCE_UNKNOWN');
  });

  it('follows an issuance until it is final, and does not revert that', async () => {
    const { tokenId } = preparedDocument();
    const prepared = { ...preparedDocument(), tokenId };
    await journal.add(prepared);
    await journal.submitted([tokenId]);
    expect(await journal.find(tokenId)).to.include({ state: 'submitted', txHash: undefined });
    await journal.mined(tokenId, mintedBy('0xabc'), true);
    await journal.submitted([tokenId]);
    await journal.failed(tokenId, { code: 'LATE', message: 'too late' });
    expect(await journal.find(tokenId)).to.include({
      state: 'final',
      txHash: '0xabc',
      failure: undefined,
    });
    expect(await journal.unfinished()).to.deep.equal([]);
  });

  it('keeps why an issuance failed, and does not revert that', async () => {
    const prepared = preparedDocument();
    await journal.add(prepared);
    const failure = { code: 'MINT_REVERTED', message: 'The registry is paused.' };
    await journal.failed(prepared.tokenId, failure);
    expect(await journal.find(prepared.tokenId)).to.deep.include({ state: 'failed', failure });
    expect(await journal.unfinished()).to.deep.equal([]);
    const mined = journal.mined(prepared.tokenId, mintedBy('0xabc'), true);
    expect(await codeThrownBy(mined)).to.equal('ISSUANCE_UNKNOWN');
    expect(await journal.find(prepared.tokenId)).to.deep.include({ state: 'failed', failure });
  });

  for (const bytes of [1_000, LONG]) {
    it(`removes the ${bytes} bytes of a failed document, and keeps its row`, async () => {
      const [failed, other] = [preparedDocument(bytes), preparedDocument(bytes)];
      for (const prepared of [failed, other]) await journal.add(prepared);
      await journal.failed(failed.tokenId, { code: 'X', message: 'x' });
      await journal.purge(0);
      expect(await rowsOf('document_parts')).to.equal(Math.ceil(bytes / 262_144));
      expect(await rowsOf('loose_documents')).to.equal(0);
      expect(await journal.documentOf(failed.tokenId)).to.include({ length: 0 });
      expect(await journal.find(failed.tokenId)).to.include({ state: 'failed' });
      await expectStored(other);
    });
  }

  describe('until a mint is final', () => {
    const minedIn = async (number: number, isFinal = false): Promise<string> => {
      const prepared = preparedDocument();
      await journal.add(prepared);
      await journal.mined(prepared.tokenId, mintedBy('0x01', number), isFinal);
      return prepared.tokenId;
    };

    it('lists the mint as unfinished, with its block', async () => {
      const tokenId = await minedIn(7);
      expect((await journal.unfinished())[0]).to.deep.include({ mined: mintedBy('0x01', 7) });
      expect(await journal.find(tokenId)).to.include({ state: 'mined', txHash: '0x01' });
      expect(await journal.signed()).to.deep.equal([]);
      expect(await journal.purge(now + 1)).to.equal(0);
      await journal.final([tokenId]);
      expect(await journal.unfinished()).to.deep.equal([]);
      expect(await journal.find(tokenId)).to.include({ state: 'final', txHash: '0x01' });
    });

    it('returns the mint to submitted when its block is gone, even a final one', async () => {
      for (const isFinal of [false, true]) {
        const tokenId = await minedIn(7, isFinal);
        await journal.unmined(tokenId);
        expect(await journal.find(tokenId)).to.include({ state: 'submitted', txHash: '0x01' });
      }
      expect((await journal.unfinished()).map(({ mined }) => mined)).to.deep.equal([undefined, undefined]);
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

  it('lists unfinished issuances in the order added, even with equal times and after a purge', async () => {
    const added: string[] = [];
    for (let count = 0; count < 30; count++) {
      const prepared = preparedDocument();
      await journal.add(prepared);
      added.push(prepared.tokenId);
      if (count === 9) {
        for (const tokenId of added) await journal.mined(tokenId, mintedBy('0x01'), true);
        await journal.purge(now + 1);
      }
    }
    expect(await tokensOf()).to.deep.equal(added.slice(10));
  });

  it('keeps the transactions of a document, oldest first, and a batch whole or not at all', async () => {
    const [one, other] = [preparedDocument(), preparedDocument()];
    for (const prepared of [one, other]) await journal.add(prepared);
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

  it('marks many issuances as submitted', async () => {
    const many = Array.from({ length: 210 }, () => preparedDocument(10));
    for (const prepared of many) await journal.add(prepared);
    await journal.submitted(many.map(({ tokenId }) => tokenId));
    const states = (await journal.unfinished()).map(({ issuance }) => issuance.state);
    expect(new Set(states)).to.deep.equal(new Set(['submitted']));
    expect(states).to.have.length(210);
  });

  it('shows nothing of another issuer, registry or chain', async () => {
    const prepared = preparedDocument();
    await journal.add(prepared, REQUEST);
    for (const change of [
      { chainId: 1337 },
      { registryAddress: `0x${'cc'.repeat(20)}` },
      { issuer: 'did:web:other.example' },
    ]) {
      const other = createDatabaseJournal(on.database, { ...SCOPE, ...change }, clock);
      expect(await other.find(prepared.tokenId)).to.equal(undefined);
      expect(await other.findByKey(REQUEST.key)).to.equal(undefined);
      expect(await other.unfinished()).to.deep.equal([]);
      expect(await other.add(preparedDocument(), REQUEST)).to.equal(undefined);
      expect(await other.purge(now + 1)).to.equal(0);
    }
    const inCapitals = { ...SCOPE, registryAddress: SCOPE.registryAddress.toUpperCase() };
    const same = createDatabaseJournal(on.database, inCapitals, clock);
    expect(await same.find(prepared.tokenId)).to.include({ tokenId: prepared.tokenId });
  });

  describe('with an Idempotency-Key', () => {
    it('returns the issuance that has the key, and stores nothing more', async () => {
      const prepared = preparedDocument();
      expect(await journal.add(prepared, REQUEST)).to.equal(undefined);
      const same = { tokenId: prepared.tokenId, requestHash: REQUEST.requestHash };
      expect(await journal.findByKey(REQUEST.key)).to.include(same);
      const again = await journal.add(preparedDocument(LONG), { ...REQUEST, requestHash: 'other' });
      expect(again).to.include(same);
      expect(await rowsOf('issuances')).to.equal(1);
      expect(await rowsOf('document_parts')).to.equal(1);
    });

    it('frees the key when the issuance failed, and keeps it when it is mined', async () => {
      const [one, two] = [preparedDocument(), preparedDocument()];
      await journal.add(one, REQUEST);
      await journal.failed(one.tokenId, { code: 'MINT_REVERTED', message: 'reverted' });
      expect(await journal.findByKey(REQUEST.key)).to.equal(undefined);
      expect(await journal.add(two, REQUEST)).to.equal(undefined);
      await journal.mined(two.tokenId, mintedBy('0x01'), true);
      expect(await journal.add(preparedDocument(), REQUEST)).to.include({ tokenId: two.tokenId });
    });

    for (const bytes of [1_000, LONG]) {
      it(`stores one of many racing documents of ${bytes} bytes, and no part of the others`, async () => {
        const racing = Array.from({ length: 8 }, () => preparedDocument(bytes));
        const journals = racing.map(() => createDatabaseJournal(on.database, SCOPE, clock));
        const answers = await Promise.all(
          racing.map((prepared, index) => journals[index]!.add(prepared, REQUEST)),
        );
        const winner = racing[answers.indexOf(undefined)]!;
        expect(answers.filter((answer) => answer === undefined)).to.have.length(1);
        for (const answer of answers.filter((one) => one !== undefined))
          expect(answer).to.include({ tokenId: winner.tokenId });
        await expectStored(winner);
        expect(await rowsOf('document_parts')).to.equal(Math.ceil(bytes / 262_144));
        expect(await rowsOf('loose_documents')).to.equal(0);
      });
    }

    it('gives the key to the next document when the one that had it fails meanwhile', async () => {
      for (let round = 0; round < 5; round++) {
        const [first, second] = [preparedDocument(LONG), preparedDocument(LONG)];
        const failing = journal
          .add(first, REQUEST)
          .then(() => journal.failed(first.tokenId, { code: 'X', message: 'x' }));
        const answer = await journal.add(second, REQUEST);
        await failing;
        // Either the first had it when the second came, or the second has it now.
        expect(answer?.tokenId ?? second.tokenId).to.equal(
          (await journal.findByKey(REQUEST.key))?.tokenId ?? first.tokenId,
        );
        await journal.failed(second.tokenId, { code: 'X', message: 'x' });
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
      expect(await rowsOf('document_parts')).to.equal(0);
      expect(await rowsOf('loose_documents')).to.equal(0);
    });

    it('keeps a document that is added twice', async () => {
      const prepared = preparedDocument(LONG);
      await journal.add(prepared);
      expect(await journal.add(prepared)).to.equal(undefined);
      now += 2 * HOUR_MS;
      await journal.purge(0);
      await expectStored(prepared);
    });
  });

  describe('purging', () => {
    it('removes only issuances that ended before a time, with parts and transactions', async () => {
      const old = await issued(LONG);
      const failed = preparedDocument();
      await journal.add(failed, REQUEST);
      await journal.failed(failed.tokenId, { code: 'X', message: 'x' });
      const unfinished = preparedDocument(LONG);
      await journal.add(unfinished);
      await journal.submitted([unfinished.tokenId]);
      await journal.keepTransactions([transactionOf(old, 1), transactionOf(unfinished.tokenId, 2)]);
      now += 10;
      const recent = await issued();
      expect(await journal.purge(now - 10)).to.equal(0);
      expect(await journal.purge(now, AbortSignal.abort()), 'while the service stops').to.equal(0);
      expect(await journal.purge(now)).to.equal(2);
      for (const tokenId of [old, failed.tokenId]) expect(await journal.find(tokenId)).to.equal(undefined);
      expect(await journal.find(recent)).to.include({ state: 'final' });
      expect(await rowsOf('document_parts')).to.equal(3 + 1);
      expect(await rowsOf('mint_transactions')).to.equal(1);
      expect(await rowsOf('loose_documents')).to.equal(0);
      expect(await journal.purge(Number.MAX_SAFE_INTEGER)).to.equal(1);
      expect(await tokensOf()).to.deep.equal([unfinished.tokenId]);
      await expectStored(unfinished);
    });

    it('removes more than one batch', async () => {
      for (let count = 0; count < 120; count++) await issued(10);
      expect(await journal.purge(now + 1)).to.equal(120);
      expect(await rowsOf('document_parts')).to.equal(0);
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
      const part = { scope, token_id: left.tokenId, part: 0, bytes: left.document.subarray(0, 262_144) };
      await db.insertInto('document_parts').values(part).execute();
      now += HOUR_MS;
      await journal.purge(0);
      expect(await rowsOf('document_parts')).to.equal(1);
      now += 1;
      expect(await journal.purge(0)).to.equal(0);
      expect(await rowsOf('document_parts')).to.equal(0);
      expect(await rowsOf('loose_documents')).to.equal(0);
    });

    it('leaves a document that is being stored whole, or interrupts it with an error', async () => {
      const slow = preparedDocument(8 * MEGABYTE);
      const adding = codeThrownBy(journal.add(slow));
      await eventually('some parts', async () => (await rowsOf('document_parts')) >= 5, { everyMs: 1 });
      // The machine slept for two hours.
      now += 2 * HOUR_MS;
      await createDatabaseJournal(on.database, SCOPE, clock).purge(0);
      expect(await adding).to.equal('STORING_INTERRUPTED');
      expect(await journal.find(slow.tokenId)).to.equal(undefined);
      expect(await rowsOf('document_parts')).to.equal(0);

      const quick = preparedDocument(8 * MEGABYTE);
      const added = journal.add(quick);
      await eventually('some parts', async () => (await rowsOf('document_parts')) >= 5, { everyMs: 1 });
      await journal.purge(now);
      expect(await added).to.equal(undefined);
      await expectStored(quick);
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
      expect(await rowsOf('document_parts')).to.equal(0);
      await expectNoLooseDocuments();
    });

    it('removes one issuance on request, unless it is unfinished', async () => {
      const [one, other] = [await issued(LONG), await issued()];
      const unfinished = preparedDocument();
      await journal.add(unfinished);
      expect(await journal.remove(one)).to.equal('removed');
      expect(await journal.remove(one)).to.equal('unknown');
      expect(await journal.remove(unfinished.tokenId)).to.equal('unfinished');
      expect(await journal.find(other)).not.to.equal(undefined);
      expect(await rowsOf('document_parts')).to.equal(2);
    });
  });

  it('stores 12 MB byte for byte while others are served', async () => {
    const prepared = preparedDocument(12 * MEGABYTE);
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    count();
    const adding = journal.add(prepared);
    const small = preparedDocument();
    await journal.add(small);
    expect(await journal.find(prepared.tokenId), 'the small one did not wait').to.equal(undefined);
    await adding;
    isOver = true;
    expect(turns).to.be.greaterThan(30);
    await expectStored(prepared);
    await journal.mined(prepared.tokenId, mintedBy('0x01'), true);
    await journal.purge(now + 1);
    expect(await rowsOf('document_parts')).to.equal(1);
  });
});
