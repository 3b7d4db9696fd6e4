import { expect } from 'chai';
import { sql, type Kysely, Migrator } from 'kysely';
import { migrations } from '../../service/database/migrations/all';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import { describeOnEngines } from '../helpers/database/engines';
import { collected, SCOPE } from '../helpers/database/prepared-documents';

const WALLETS = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as const;
const DID = SCOPE.issuer;
const PART_BYTES = 256 * 1024;

/** A signed document as earlier versions stored it. */
interface OldIssuance {
  tokenId: string;
  wallet: string;
  /** `mined` without it. */
  state?: 'signed' | 'mined' | 'failed';
  key?: string;
  /** The credential's JSON. */
  document?: string;
  createdAt: number;
}

/** `subject` is written before the issuer, `proofValue` after it. */
const credential = (issuer: string, { subject = '', proofValue = 'u2V0A' } = {}): string =>
  JSON.stringify({
    credentialSubject: { note: subject },
    issuer,
    id: 'urn:uuid:1',
    proof: { type: 'DataIntegrityProof', verificationMethod: `${issuer}#keys-1`, proofValue },
  });

describeOnEngines('the journal of an earlier version', (on) => {
  beforeEach(() => migrateTo('0004-orphans-in-order'));

  const journalOf = (issuer: string): Journal =>
    createDatabaseJournal(on.database, { ...SCOPE, issuer }, { now: () => 100 });

  /** The journal's tables are empty here: they are dropped and created in their earlier shape. */
  async function migrateTo(name: string): Promise<void> {
    const { db } = on.database;
    if (name === '0004-orphans-in-order') {
      const ofDocuments = ['issuances', 'document_parts', 'loose_documents'];
      for (const table of [...ofDocuments, 'mint_transactions', 'journal_chains'])
        await db.schema.dropTable(table).execute();
      await sql`delete from kysely_migration where name >= '0003'`.execute(db);
    }
    const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
    const { error } = await migrator.migrateTo(name);
    if (error !== undefined) throw error as Error;
  }

  async function store(old: OldIssuance): Promise<void> {
    const { tokenId, wallet, state = 'mined', key, document = credential(DID), createdAt } = old;
    const db = on.database.db as unknown as Kysely<Record<string, Record<string, unknown>>>;
    const scope = `${SCOPE.chainId}:${SCOPE.registryAddress}:${wallet}`;
    const bytes = Buffer.from(document);
    const common = { scope, token_id: tokenId };
    await db
      .insertInto('issuances')
      .values({
        ...common,
        position: createdAt,
        credential_id: 'urn:uuid:1',
        owner: '0x',
        holder: '0x',
        remark: '0x',
        document_bytes: bytes.length,
        state,
        tx_hash: state === 'mined' ? '0x01' : null,
        failure_code: state === 'failed' ? 'MINT_REVERTED' : null,
        failure_message: state === 'failed' ? 'reverted' : null,
        idempotency_key: key ?? null,
        request_hash: null,
        created_at: createdAt,
        ended_at: state === 'signed' ? null : createdAt,
      })
      .execute();
    for (let part = 0; part * PART_BYTES < bytes.length; part++) {
      const some = new Uint8Array(bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES));
      await db
        .insertInto('document_parts')
        .values({ ...common, part, bytes: some })
        .execute();
    }
    await db
      .insertInto('mint_transactions')
      .values({ ...common, hash: `0x${tokenId}`, position: createdAt, nonce: 1, raw: '0x02' })
      .execute();
  }

  it('is assigned to the issuer, whichever wallet minted, with documents and keys', async () => {
    const [first, second] = WALLETS;
    const hidden = `"issuer":"did:web:someone.example"`;
    const documents = new Map([
      ['aa', credential(DID)],
      ['bb', credential(DID, { subject: hidden })],
      ['cc', credential(DID, { subject: 'x'.repeat(300_000), proofValue: 'u'.repeat(600_000) })],
      ['dd', credential(DID, { subject: 'ü'.repeat((PART_BYTES - 60) / 2) })],
    ]);
    let createdAt = 0;
    for (const [tokenId, document] of documents) {
      const wallet = createdAt % 2 === 0 ? first : second;
      await store({ tokenId, wallet, document, createdAt: ++createdAt });
    }
    await store({ tokenId: 'ee', wallet: first, state: 'signed', createdAt: 9 });
    const other = credential('did:web:other.example');
    await store({ tokenId: 'ff', wallet: first, document: other, createdAt: 10 });
    await store({ tokenId: 'a1', wallet: first, state: 'failed', createdAt: 11 });
    for (const [index, wallet] of WALLETS.entries())
      await store({ tokenId: `b${index}`, wallet, key: 'order-1', createdAt: 21 - index });
    await migrateTo('0005-journal-by-issuer');

    const journal = journalOf(DID);
    for (const [tokenId, document] of documents) {
      expect(await journal.find(tokenId), tokenId).to.include({ state: 'final', txHash: '0x01' });
      expect((await collected(journal.documentOf(tokenId))).toString() === document, tokenId).to.equal(true);
    }
    const [unfinished, ...more] = await journal.unfinished();
    expect(more).to.deep.equal([]);
    expect(unfinished?.issuance).to.include({ tokenId: 'ee', state: 'signed' });
    expect(unfinished?.transactions.map(({ hash }) => hash)).to.deep.equal(['0xee']);
    expect(await journal.find('ff')).to.equal(undefined);
    expect(await journalOf('did:web:other.example').find('ff')).to.include({ state: 'final' });
    expect(await journal.highestFinal()).to.equal(undefined);
    // A failed issuance keeps its row only, and a key that two wallets used stays with the older document.
    const failure = { code: 'MINT_REVERTED', message: 'reverted' };
    expect(await journal.find('a1')).to.deep.include({ state: 'failed', failure });
    expect(await journal.documentOf('a1')).to.include({ length: 0 });
    const { rows } = await sql`select 1 from document_parts where token_id = 'a1'`.execute(on.database.db);
    expect(rows).to.deep.equal([]);
    expect(await journal.findByKey('order-1')).to.include({ tokenId: 'b1' });
    expect(await journal.find('b0')).to.include({ state: 'final' });
  });
});
