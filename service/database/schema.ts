import type { ColumnType } from 'kysely';

/**
 * The tables. Times are epoch milliseconds from the injected clock. Ids and bodies are text, so that the same
 * statements run on both engines.
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
  /** Chain, registry and the hash of block 0: a restarted chain has another feed. */
  feed: string;
  next_block: number;
  last_block_hash: string | null;
  /** Incremented by each reader of the feed; writes of earlier readers are refused. */
  epoch: Defaulted<number>;
  /** 1: nothing is delivered until the blocks read so far have been compared with the chain. */
  held: Defaulted<number>;
  /** When reading last began. */
  opened_at: Defaulted<number>;
  /** The last block whose old events were purged; null if none were. */
  purged_up_to: Defaulted<number | null>;
}

/** Hashes of blocks that were read, back to the finality depth. A reorganisation is recognised by them. */
export interface BlocksTable {
  feed: string;
  number: number;
  /** Null for the block before the first one read. */
  hash: string | null;
}

/** Every event, with the body that is sent; it is never rebuilt. Old events may be purged. */
export interface EventsTable {
  feed: string;
  /** The CloudEvent's id. */
  event_id: string;
  type: string;
  token_id: string;
  block_number: number;
  block_hash: string;
  transaction_hash: string;
  /** Position within the block. The body contains the position within the transaction. */
  log_index: number;
  body: string;
  recorded_at: number;
  /**
   * Set if the event was delivered, its block was then orphaned, and its transaction has not been mined
   * again.
   */
  orphaned_at: Defaulted<number | null>;
}

/**
 * The token queues: one per token, so that the order within a token is structural. Positions are dense and
 * begin at 1.
 */
export interface StreamsTable {
  stream: string;
  feed: string;
  /** Position of the first undelivered event; tail + 1 if there is none. */
  head: number;
  /** Position of the last enqueued event. */
  tail: number;
  /** Attempts begun for the event at head. They are counted at the claim, so that a crash counts. */
  attempts: number;
  /** When the first of these attempts began; null before it. */
  first_attempted_at: Defaulted<number | null>;
  /** Null: the queue is empty. In the future: it backs off, or is leased until then. */
  next_attempt_at: number | null;
  /** Id of the current claim. Every settlement checks it. */
  lease: string | null;
}

/** The event at each position of a queue. Events before the head are delivered or dead letters. */
export interface DeliveriesTable {
  stream: string;
  position: number;
  event_id: string;
  feed: string;
}

/** Every attempt to deliver an event. */
export interface AttemptsTable {
  feed: string;
  event_id: string;
  attempt: number;
  attempted_at: number;
  /** The receiver's HTTP status, or null when there was no answer. */
  status: number | null;
  /** The error; null on success. */
  error: string | null;
  milliseconds: number;
}

/** Events that were given up; they can be sent again. */
export interface DeadLettersTable {
  feed: string;
  event_id: string;
  died_at: number;
  attempts: number;
  /** HTTP status of the last attempt. */
  status: number | null;
  error: string | null;
}

/** Events that were delivered, or may have been, from blocks that were orphaned. */
export interface OrphansTable {
  feed: string;
  event_id: string;
  block_number: number;
  block_hash: string;
  outcome: 'delivered' | 'attempted';
  body: string;
  orphaned_at: number;
  /** The block in which its transaction was mined again; the delivery is valid then. */
  mined_again_in: number | null;
}

/** Every document from its signature on. The scope names its issuer, chain and registry. */
export interface IssuancesTable {
  /** Chain, registry and the issuer's DID. */
  scope: string;
  token_id: string;
  /** Ascends in insertion order; two concurrent insertions may have the same value. */
  position: number;
  credential_id: string;
  beneficiary: string;
  holder: string;
  remark: string;
  /** Size of all parts; 0 after a failure, which deletes them. */
  document_bytes: number;
  state: 'signed' | 'submitted' | 'mined' | 'final' | 'failed';
  /** The mined mint's transaction. */
  tx_hash: string | null;
  failure_code: string | null;
  failure_message: string | null;
  /** Null if there was none, and after a failure: the key can be used again. */
  idempotency_key: string | null;
  request_hash: string | null;
  created_at: number;
  /** When it became final or failed; null before. */
  ended_at: number | null;
  /** The block of the mint. Null before the mint, and if its chain was restarted since. */
  block_number: Defaulted<number | null>;
  block_hash: Defaulted<string | null>;
}

/** Signed documents in parts, numbered from 0. Each statement handles one part, so that none takes long. */
export interface DocumentPartsTable {
  scope: string;
  token_id: string;
  part: number;
  /** libsql gives an ArrayBuffer, pg a Buffer. */
  bytes: ColumnType<Uint8Array | ArrayBuffer, Uint8Array, never>;
}

/** Documents with parts but without an issuance: being stored, left over by a crash, or being deleted. */
export interface UnfinishedDocumentsTable {
  scope: string;
  token_id: string;
  /** When storing began; null if its parts are to be deleted. */
  begun_at: number | null;
}

/** Every transaction that was signed for a document. It is stored before it is sent. */
export interface MintTransactionsTable {
  scope: string;
  token_id: string;
  hash: string;
  /** Ascends in the order of keeping. */
  position: number;
  nonce: number;
  raw: string;
}

/** The chain of a journal's blocks: a restarted local chain has another block 0. */
export interface JournalChainsTable {
  scope: string;
  genesis_hash: string;
}
