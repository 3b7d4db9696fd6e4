/**
 * Tables. Times are epoch milliseconds from the injected clock; ids and bodies are text, so that the same statements run on
 * every engine.
 */
export interface Schema {
  feeds: FeedsTable;
  events: EventsTable;
  streams: StreamsTable;
  deliveries: DeliveriesTable;
  attempts: AttemptsTable;
}

/** How far each registry's events have been read. */
export interface FeedsTable {
  /** Chain, registry and the hash of block 0: a chain that is started anew is another feed. */
  feed: string;
  next_block: number;
  last_block_hash: string | null;
}

/** Every event, with the bytes that are sent: made once, never again. */
export interface EventsTable {
  feed: string;
  /** The CloudEvent's id. */
  event_id: string;
  type: string;
  token_id: string;
  block_number: number;
  block_hash: string;
  transaction_hash: string;
  log_index: number;
  body: string;
  recorded_at: number;
}

/**
 * The outbox's queues: one per token, so that order within a token is structural. Positions are dense and begin at 1.
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
  /** Null: nothing to do. In the future: backing off, or leased until then. */
  next_attempt_at: number | null;
  /** Whose claim it is; done and fail are fenced by it. */
  lease: string | null;
}

/** Which event stands at which position of a stream. */
export interface DeliveriesTable {
  stream: string;
  position: number;
  event_id: string;
  feed: string;
  delivered_at: number | null;
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
