import type { ColumnType } from 'kysely';

/**
 * Tables. Times are epoch milliseconds from the injected clock; ids and bodies are text, so that the same
 * statements run on every engine.
 */
export interface Schema {
  feeds: FeedsTable;
  blocks: BlocksTable;
  events: EventsTable;
  streams: StreamsTable;
  deliveries: DeliveriesTable;
  attempts: AttemptsTable;
  dead_letters: DeadLettersTable;
  orphans: OrphansTable;
  issuances: IssuancesTable;
  document_parts: DocumentPartsTable;
  loose_documents: UnfinishedDocumentsTable;
  mint_transactions: MintTransactionsTable;
  journal_chains: JournalChainsTable;
}

/** A column with a value for rows that do not name it. */
type Defaulted<T> = ColumnType<T, T | undefined, T>;

/** How far each registry's events have been read. */
export interface FeedsTable {
  /** Chain, registry and the hash of block 0: a chain that is started anew is another feed. */
  feed: string;
  next_block: number;
  last_block_hash: string | null;
  /** Counts the readers of the feed, one after the other: what an earlier one still writes is refused. */
  epoch: Defaulted<number>;
  /** 1: nothing is delivered until what was read has been compared with the chain. */
  held: Defaulted<number>;
  /** When its reading last began. */
  opened_at: Defaulted<number>;
  /** The last block of which events were removed because they were old; null: none were. */
  purged_up_to: Defaulted<number | null>;
}

/**
 * Hashes of blocks that were read, down to the finality depth: what a reorganisation is recognised and
 * measured by.
 */
export interface BlocksTable {
  feed: string;
  number: number;
  /** Null: the block before the first that was read, whichever it is. */
  hash: string | null;
}

/** Every event, with the bytes that are sent: made once, never again. Old ones may be removed. */
export interface EventsTable {
  feed: string;
  /** The CloudEvent's id. */
  event_id: string;
  type: string;
  token_id: string;
  block_number: number;
  block_hash: string;
  transaction_hash: string;
  /** Position within the block; the body has the one within the transaction. */
  log_index: number;
  body: string;
  recorded_at: number;
  /** Not null: delivered, and then its block was orphaned, and its transaction has not been mined again. */
  orphaned_at: Defaulted<number | null>;
}

/**
 * The outbox's queues: one per token, so that order within a token is structural. Positions are dense and
 * begin at 1.
 */
export interface StreamsTable {
  stream: string;
  feed: string;
  /** Position of the earliest undelivered event; tail + 1 when there is none. */
  head: number;
  /** Position of the last enqueued event. */
  tail: number;
  /** Attempts begun for the event at head. Counted when claimed, so that a crash counts. */
  attempts: number;
  /** When the first of them began; null before it. */
  first_attempted_at: Defaulted<number | null>;
  /** Null: nothing to do. In the future: backing off, or leased until then. */
  next_attempt_at: number | null;
  /** Whose claim it is; every settlement is fenced by it. */
  lease: string | null;
}

/** Which event stands at which position of a stream. Behind the head: delivered, or a dead letter. */
export interface DeliveriesTable {
  stream: string;
  position: number;
  event_id: string;
  feed: string;
}

/** Every attempt to deliver leaves a row. */
export interface AttemptsTable {
  feed: string;
  event_id: string;
  attempt: number;
  attempted_at: number;
  /** The receiver's HTTP status, or null when there was no answer. */
  status: number | null;
  /** Why it failed; null for success. */
  error: string | null;
  milliseconds: number;
}

/** Events that were given up; they can be sent again. */
export interface DeadLettersTable {
  feed: string;
  event_id: string;
  died_at: number;
  attempts: number;
  /** Of the last attempt. */
  status: number | null;
  error: string | null;
}

/** What had reached the subscriber, or may have, from blocks that were orphaned. */
export interface OrphansTable {
  feed: string;
  event_id: string;
  block_number: number;
  block_hash: string;
  outcome: 'delivered' | 'attempted';
  body: string;
  orphaned_at: number;
  /** The block that its transaction was mined in again; then the delivery was right after all. */
  mined_again_in: number | null;
}

/**
 * Every document from its signature on. Its scope says who issued it, on which chain and in which registry.
 */
export interface IssuancesTable {
  /** Chain, registry and the issuer's DID. */
  scope: string;
  token_id: string;
  /** Ascends in the order of adding; two that were added side by side may have the same. */
  position: number;
  credential_id: string;
  beneficiary: string;
  holder: string;
  remark: string;
  /** Of all its parts; 0 when it failed, for then they are deleted. */
  document_bytes: number;
  state: 'signed' | 'submitted' | 'mined' | 'final' | 'failed';
  /** Of the mined mint. */
  tx_hash: string | null;
  failure_code: string | null;
  failure_message: string | null;
  /** Null when there was none, and when it failed: the key is free again. */
  idempotency_key: string | null;
  request_hash: string | null;
  created_at: number;
  /** When it became final or failed; null before. */
  ended_at: number | null;
  /**
   * The block of the mint; null before it is mined, and when that was on a chain that was started anew since.
   */
  block_number: Defaulted<number | null>;
  block_hash: Defaulted<string | null>;
}

/** Signed documents in parts, dense from 0: no statement has more than one, so that none takes long. */
export interface DocumentPartsTable {
  scope: string;
  token_id: string;
  part: number;
  /** libsql gives an ArrayBuffer, pg a Buffer. */
  bytes: ColumnType<Uint8Array | ArrayBuffer, Uint8Array, never>;
}

/** Documents with parts and without an issuance: being stored, left by a crash, or on their way out. */
export interface UnfinishedDocumentsTable {
  scope: string;
  token_id: string;
  /** When its storing began; null: its parts are to be removed. */
  begun_at: number | null;
}

/** Every transaction that was signed for a document: before it is sent. */
export interface MintTransactionsTable {
  scope: string;
  token_id: string;
  hash: string;
  /** Ascends in the order of keeping. */
  position: number;
  nonce: number;
  raw: string;
}

/** Which chain the blocks of a journal are of: a local chain that is started anew has another block 0. */
export interface JournalChainsTable {
  scope: string;
  genesis_hash: string;
}
