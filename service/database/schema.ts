import type { ColumnType, Generated } from 'kysely';
import type { ErrorCode } from '../base/errors';

/**
 * The tables. Times are epoch milliseconds from the injected clock. Bodies are text, so that the same
 * statements run on both engines.
 */
export interface Schema {
  feeds: FeedsTable;
  /**
   * Hashes of blocks that were read, back to the finality depth. A reorganisation is recognised by them. Null
   * for the block before the first one read.
   */
  blocks: { feed: number; number: number; hash: string | null };
  /**
   * The tokens with events, and the subjects of operational events. `token_id`: in decimals; empty for events
   * of the registry itself; the subject, in the feed of operational events.
   */
  tokens: { id: Generated<number>; feed: number; token_id: string };
  events: EventsTable;
  subscriptions: SubscriptionsTable;
  access_keys: AccessKeysTable;
  /** One row. Its version is incremented by every change of subscriptions and registries. */
  subscription_changes: { id: number; version: number };
  /**
   * The newest changes: each has a version of `subscription_changes`. `subject`: the name of the subscription
   * that changed, `registries`, or `all`.
   */
  subscription_change_log: { version: number; subject: string };
  deliverers: DeliverersTable;
  channels: ChannelsTable;
  queues: QueuesTable;
  deliveries: DeliveriesTable;
  attempts: AttemptsTable;
  /** Events that were given up; they can be sent again. */
  dead_letters: { channel: number; event: number; died_at: number; attempts: number };
  orphans: OrphansTable;
  registries: RegistriesTable;
  conditions: ConditionsTable;
  /** One row: the key that authenticates the cursors of clients that fetch. */
  cursor_keys: { id: number; bytes: Bytes };
  issuances: IssuancesTable;
  document_parts: DocumentPartsTable;
  /**
   * Documents with parts but without an issuance: being stored, left over by a crash, or being deleted.
   * `begun_at`: when storing began; null if its parts are to be deleted.
   */
  loose_documents: { scope: string; token_id: string; begun_at: number | null };
  mint_transactions: MintTransactionsTable;
  /** The chain of a journal's blocks: a restarted local chain has another block 0. */
  journal_chains: { scope: string; genesis_hash: string };
}

/** A column with a value for rows that do not name it. */
type Defaulted<T> = ColumnType<T, T | undefined, T>;

/** libsql gives an ArrayBuffer, pg a Buffer. */
type Bytes = ColumnType<Uint8Array | ArrayBuffer, Uint8Array, Uint8Array>;

/** The position up to which each registry's events have been read. */
export interface FeedsTable {
  id: Generated<number>;
  /**
   * Chain, registry and the hash of block 0: a restarted chain has another feed. `operations`: the feed of
   * operational events, which no chain writes.
   */
  feed: string;
  next_block: number;
  /** Only of feeds that early versions read: `blocks` has the hash of the last block. */
  last_block_hash: Defaulted<string | null>;
  /** Incremented by each reader of the feed; writes of earlier readers are refused. */
  epoch: Defaulted<number>;
  /** 1: nothing is delivered until the blocks read so far have been compared with the chain. */
  held: Defaulted<number>;
  /** When reading last began. */
  opened_at: Defaulted<number>;
  /** The last block whose old events were purged; null if none were. */
  purged_up_to: Defaulted<number | null>;
  /** The first block that the feed was told to read; null if it began before this column existed. */
  start_block: Defaulted<number | null>;
  /** The highest position of its events in the stream. */
  last_position: Defaulted<number>;
  /** Events up to this position were purged, and those before it that are kept left the stream. */
  purged_position: Defaulted<number>;
}

/** Every event, with the body that is sent. Old events may be purged. */
export interface EventsTable {
  /** Ascends in the order of recording. */
  id: Generated<number>;
  feed: number;
  token: number;
  /** The 16 bytes of the CloudEvent's id. */
  event_id: Bytes;
  type: string;
  block_number: number;
  block_hash: string;
  /** Position within the block. The body contains the position within the transaction. */
  log_index: number;
  body: string;
  /**
   * `retracting`: for subscriptions with retractions, and for clients that fetch with them. `fetching`: only
   * for the latter.
   */
  audience: Defaulted<'all' | 'retracting' | 'fetching'>;
  /**
   * Null for the audience `all`. Otherwise the event of that audience that this row retracts, or sends under
   * another id after its retraction.
   */
  original: Defaulted<number | null>;
  recorded_at: number;
  /** Set if its block was orphaned, and it has not been mined again. */
  orphaned_at: Defaulted<number | null>;
  /** Its place in a trace, as a `traceparent`. Null for events from before this column. */
  trace: Defaulted<string | null>;
  /**
   * Ascends in the order in which the feed's events are committed. Null for rows that clients that fetch do
   * not get (service/outbox/event-stream.ts).
   */
  position: Defaulted<number | null>;
}

/** The receivers of events. */
export interface SubscriptionsTable {
  id: Generated<number>;
  /** `default`, which the settings describe, or a UUID. */
  name: string;
  /** The subscription as JSON, without secrets. Null for `default`. */
  definition: string | null;
  /** JSON encrypted under SECRETS_KEY. Null if there are no secrets. */
  secrets: string | null;
  /** The state that the channel of a new feed gets. */
  state: Defaulted<'active' | 'paused' | 'gone'>;
  created_at: number;
  changed_at: number;
  /** The owner of the keys that it belongs to. Null: it is the operator's. */
  owner: Defaulted<string | null>;
}

/** The keys that see a part of the tokens. */
export interface AccessKeysTable {
  /** A UUID. */
  id: string;
  /** Keys with the same owner have the same subscriptions. */
  owner: string;
  name: string;
  /** SHA-256 of the key. */
  digest: Bytes;
  /** JSON. */
  scope: string;
  /** With commas between them. */
  may: string;
  created_at: number;
  expires_at: number;
  /** When it was revoked. */
  ended_at: number | null;
  /** Its last use, to the hour. */
  used_at: number | null;
  /** The nonce of a wallet's log-in: each makes one key. */
  nonce: string | null;
}

/** The processes that deliver a feed (service/delivery/deliverers.ts). */
interface DeliverersTable {
  feed: string;
  /** An id that each process makes for itself. */
  process: string;
  /** By the clock of the database. Epoch milliseconds. */
  seen_at: number;
  /** The ids of the channels that it has no sink for, as a JSON list. */
  lacking: string;
  /** The ids of the processes with which it divides the limits, and what each lacks, as a JSON list. */
  divides_with: string;
}

/** A channel delivers the events of one feed to one subscription. */
interface ChannelsTable {
  id: Generated<number>;
  subscription: number;
  feed: number;
  /** `gone`: the receiver answered 410. */
  state: Defaulted<'active' | 'paused' | 'gone'>;
  /**
   * Stored events after this block and log index are still to be enqueued, before any later event. Null if
   * none are.
   */
  fill_block: Defaulted<number | null>;
  fill_index: Defaulted<number | null>;
  /** Start of the first failed attempt since the last success. Null if the last attempt succeeded. */
  failing_since: Defaulted<number | null>;
  /** SHA-256 of the sink that failed last. Null if none did. */
  sink_hash: Defaulted<string | null>;
}

/**
 * The token queues: one for each channel and token, so that the order within a token is structural. Positions
 * are dense and begin at 1.
 */
export interface QueuesTable {
  channel: number;
  token: number;
  /** Position of the first undelivered event; tail + 1 if there is none. */
  head: number;
  /** Position of the last enqueued event. */
  tail: number;
  /** Attempts begun for the event at head. They are counted at the claim, so that a crash counts. */
  attempts: number;
  /** When the first of these attempts began; before it, since when a queue was due that was claimed. */
  first_attempted_at: Defaulted<number | null>;
  /** Null: the queue is empty. In the future: it backs off, or is leased until then. */
  next_attempt_at: number | null;
  /** Id of the current claim. Every settlement checks it. */
  lease: Defaulted<string | null>;
  /** Position of the last event of the current claim. */
  claimed_to: Defaulted<number | null>;
  /**
   * Events up to this position may have been sent under a claim that was never settled, because its process
   * died.
   */
  sent_to: Defaulted<number>;
}

/** The event at each position of a queue. Events before the head are delivered or dead letters. */
export interface DeliveriesTable {
  channel: number;
  token: number;
  position: number;
  event: number;
}

/** Every attempt to deliver an event. */
export interface AttemptsTable {
  event: number;
  channel: number;
  attempt: number;
  attempted_at: number;
  /** The receiver's HTTP status, or null when there was no answer. */
  status: number | null;
  /** The error; null on success. */
  error: string | null;
  milliseconds: number;
}

/** Events that were delivered, or may have been, from blocks that were orphaned. */
interface OrphansTable {
  feed: number;
  event_id: Bytes;
  block_number: number;
  block_hash: string;
  outcome: 'delivered' | 'attempted';
  body: string;
  orphaned_at: number;
  /** The block in which its transaction was mined again; the delivery is valid then. */
  mined_again_in: number | null;
}

/** The conditions that hold now (service/events/conditions.ts). */
interface ConditionsTable {
  /** The kind. */
  what: string;
  subject: string;
  /** The part of the service that sees it: a registry, the issuing of a scope, … */
  observer: string;
  since: number;
  /** JSON. */
  detail: string;
}

/** Registries that were added without a setting, and registries that were given up. */
interface RegistriesTable {
  chain_id: number;
  /** In lower case. */
  address: string;
  /** The network's name. */
  network: string;
  /** Null: the registry's `genesis()`. */
  start_block: number | null;
  /** Null: `finality_tag`, CONFIRMATIONS, or the network's. */
  confirmations: number | null;
  /** Instead of `confirmations`. */
  finality_tag: Defaulted<'finalized' | 'safe' | null>;
  added_at: number;
  /** When it was given up; null while it is followed. */
  removed_at: Defaulted<number | null>;
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
  /** The beginning of it; null if the subject has none, and in issuances before this column. */
  bl_number: Defaulted<string | null>;
  /** Size of all parts; 0 after a failure, which deletes them. */
  document_bytes: number;
  state: 'signed' | 'submitted' | 'mined' | 'final' | 'failed';
  /** The mined mint's transaction. */
  tx_hash: string | null;
  failure_code: ErrorCode | null;
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
  /** The place of its request in a trace, as a `traceparent`. Null for issuances from before this column. */
  trace: Defaulted<string | null>;
  /** When the request came, its signing began and ended, and the mint was seen mined. */
  received_at: Defaulted<number | null>;
  signing_at: Defaulted<number | null>;
  signed_at: Defaulted<number | null>;
  mined_at: Defaulted<number | null>;
}

/** Signed documents in parts, numbered from 0. Each statement handles one part, so that none takes long. */
export interface DocumentPartsTable {
  scope: string;
  token_id: string;
  part: number;
  bytes: Bytes;
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
  /** Null for transactions from before this column. */
  signed_at: Defaulted<number | null>;
}
