import { sql, type Kysely, type Migration } from 'kysely';

/** Longer than the JSON from `"issuer"` to the end of a DID, which may be split between two parts. */
const OVERLAP = 2_048;
const ISSUER = /"issuer":"(did:web:[^"\\]+)"/g;

/**
 * Finds issuances by their issuer's DID instead of the wallet that minted them, and records the block of each
 * mint. Mints of earlier versions count as final. The documents of failed issuances are deleted.
 */
export const journalByIssuer: Migration = {
  async up(db: Kysely<unknown>) {
    const { schema } = db;
    await schema.alterTable('issuances').addColumn('block_number', 'bigint').execute();
    await schema.alterTable('issuances').addColumn('block_hash', 'text').execute();
    await schema
      .createIndex('issuances_block')
      .on('issuances')
      .columns(['scope', 'block_number'])
      .where('block_number' as never, 'is not', null)
      .execute();
    await schema
      .createTable('journal_chains')
      .addColumn('scope', 'text', (column) => column.notNull().primaryKey())
      .addColumn('genesis_hash', 'text', (column) => column.notNull())
      .execute();
    await sql`update issuances set state = 'final' where state = 'mined'`.execute(db);
    await renameScopes(db);
    await sql`delete from document_parts where exists (select 1 from issuances where state = 'failed'
      and issuances.scope = document_parts.scope and issuances.token_id = document_parts.token_id)`.execute(
      db,
    );
    await sql`update issuances set document_bytes = 0 where state = 'failed'`.execute(db);
  },
};

/** Old scopes ended with the wallet. Only the document names its issuer. */
async function renameScopes(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ scope: string; token_id: string }>`
    select scope, token_id from issuances order by created_at, position`.execute(db);
  for (const { scope: old, token_id } of rows) {
    const issuer = await issuerOf(db, old, token_id);
    if (issuer === undefined) continue;
    const scope = `${old.split(':').slice(0, 2).join(':')}:${issuer}`;
    // Two wallets may have used the same idempotency key. The earlier document keeps it.
    await sql`update issuances set scope = ${scope}, idempotency_key = case when exists (
        select 1 from issuances other
        where other.scope = ${scope} and other.idempotency_key = issuances.idempotency_key
      ) then null else idempotency_key end where scope = ${old} and token_id = ${token_id}`.execute(db);
    for (const table of ['document_parts', 'loose_documents', 'mint_transactions'])
      await sql`update ${sql.table(table)} set scope = ${scope}
        where scope = ${old} and token_id = ${token_id}`.execute(db);
  }
}

/**
 * The last "issuer" of the JSON, searched from the end, where only the proof follows it. Quotes inside of
 * strings are escaped, so they do not match.
 */
async function issuerOf(db: Kysely<unknown>, scope: string, tokenId: string): Promise<string | undefined> {
  const { rows } = await sql<{ part: number }>`select part from document_parts
    where scope = ${scope} and token_id = ${tokenId} order by part desc`.execute(db);
  let following = '';
  for (const { part } of rows) {
    const found = await sql<{ bytes: Uint8Array | ArrayBuffer }>`select bytes from document_parts
      where scope = ${scope} and token_id = ${tokenId} and part = ${part}`.execute(db);
    const bytes = found.rows[0]?.bytes ?? new Uint8Array();
    // Read as one character a byte: the pattern is ASCII, and a part may begin inside a UTF-8 character.
    const text = Buffer.from(bytes as Uint8Array).toString('latin1') + following;
    const issuer = [...text.matchAll(ISSUER)].at(-1)?.[1];
    if (issuer !== undefined) return issuer;
    following = text.slice(0, OVERLAP);
  }
  return undefined;
}
