import type { DecryptedRemark } from '../issuance/remarks';
import type { Attempt, Delivery, DeliveryState } from '../outbox/deliveries';
import type { TokenState } from '../registry/read-token-state';
import type { PossibleOperation } from '../token/possible-operations';
import type { DatedEndorsement } from '../token/read-token-history';
import type { Answer, Outcome } from '../verification/answer';

// The JSON of answers. service/http/description/ describes the same.

/** A token, as `GET /tokens/{tokenId}`, the console and `tdoc token --json` show it. */
export interface TokenView {
  network: string;
  chainId: number;
  /** Written as in the question. */
  registry: string;
  /** In decimals. */
  tokenId: string;
  tokenIdHex: string;
  /** Whether the endorsements go back to the mint. */
  isWhole: boolean;
  /** The oldest first. */
  endorsements: EndorsementView[];
  state: TokenState;
  /** The operations that are possible next. */
  next: PossibleOperation[];
}

export interface EndorsementView extends Omit<DatedEndorsement, 'timestamp'>, RemarkView {
  /** ISO 8601 in UTC, in seconds. */
  time: string;
}

/** A remark: its bytes in hex, and its text unless the id of a credential is needed to read it. */
export interface RemarkView {
  remark: string;
  decrypted?: DecryptedRemark;
}

/** How far issuing of a document is. */
export interface IssuingProgress {
  tokenId: string;
  /** The first characters of the number of the Bill of Lading; null if it is not known. */
  blNumber: string | null;
  state: 'signed' | 'submitted' | 'mined' | 'final' | 'failed';
  /** ISO 8601 in UTC. */
  createdAt: string;
  txHash: string | null;
  /** Blocks on top of the mint's block, of `confirmations`. Null before it is mined. */
  confirmedBlocks: number | null;
  failure: { code: string; message: string } | null;
}

/** An event beside the operation that made it. */
export interface EventOfToken {
  id: string;
  type: string;
  /** Absent if the caller may not see them. */
  deliveries?: {
    subscription: string;
    state: DeliveryState;
    attempts: number;
    /** Error of the last attempt. */
    error: string | null;
  }[];
}

/** A token with the facts that the service knows about it. */
export interface KnownToken extends TokenView {
  explorerUrl: string | null;
  endorsements: (EndorsementView & { events: EventOfToken[] })[];
  /** How issuing went, if this service issued it. */
  issuing: IssuingProgress | null;
}

/** The names of an event. Its token is null if it is an event of the registry itself. */
export interface EventNames {
  id: string;
  type: string;
  /** Chain id and address. */
  registry: string;
  /** In decimals. */
  tokenId: string | null;
  tokenIdHex: string | null;
}

/** A delivery with every attempt, the oldest first. Times are ISO 8601 in UTC. */
export interface DeliveryView extends Pick<Delivery, 'subscription' | 'state'> {
  /** Null: behind another event of its token, or it does not wait. */
  nextAttemptAt: string | null;
  attempts: (Omit<Attempt, 'attemptedAt'> & { attemptedAt: string })[];
}

/** An event with its body, and the headers of each delivery as they would be sent now. */
export interface EventDetails extends EventNames {
  /** The bytes that are sent, as text. */
  body: string;
  deliveries: (DeliveryView & { headers: Record<string, string> })[];
}

/** The verdict about a credential. Texts may contain what strangers wrote. */
export interface VerifiedView {
  /** Whether all three answers are `valid`. */
  verified: boolean;
  outcome: Outcome;
  documentIntegrity: Answer;
  issuerIdentity: Answer & { issuer: string | null };
  documentStatus: Answer & { tokenId: string | null; registry: string | null };
  /** Hosts and nodes outside of the service that were asked, without keys. */
  lookedUp: string[];
  /** The version that was verified. */
  shown: Readonly<Record<string, unknown>> | null;
}
