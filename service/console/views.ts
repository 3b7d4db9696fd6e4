import type { Delivery, DeliveryState } from '../outbox/deliveries';
import type { Endorsement } from '../token/endorsement-chain';
import type { PossibleOperation } from '../token/possible-operations';
import type { Check, Outcome } from '../verification/answer';

/**
 * The JSON that the console's page gets from its service. Both sides are built together: these shapes are no
 * interface for others. Times are in epoch milliseconds, token ids 64 hexadecimal digits, unless another unit
 * is named. Texts may contain what strangers wrote.
 */

/** `operator` (ADMIN_API_KEY) may change things; `reader` (CONSOLE_READ_KEY) only looks. */
export type Role = 'operator' | 'reader';

/** GET and POST /console/api/session. GET answers 204 if nobody is logged in. */
export interface Session {
  role: Role;
  expiresAt: number;
}

/** The body of POST /console/api/session: a key, or the token of a link that logs in once. */
export type LogIn = { key: string } | { link: string };

/** Something that is wrong, and what to do about it. */
export interface Problem {
  severity: 'error' | 'warning';
  /** One sentence. */
  message: string;
  remedy: string;
  /** The page of the console that shows more: `#/deliveries?state=dead`, for example. */
  href?: string;
}

/** One measurement for a plot: `at`, and the value. */
export type Sample = readonly [at: number, value: number];

/** A registry that is followed. */
export interface RegistryView {
  network: string;
  chainId: number;
  /** Lower-case address. */
  registry: string;
  state: 'starting' | 'following' | 'standby' | 'failing' | 'stopped';
  since: number;
  headBlock: number | null;
  /** The last block that was read. */
  readUpTo: number | null;
  /** `headBlock` minus `readUpTo`. */
  lagBlocks: number | null;
  /** Why it is failing or stopped. */
  reason: string | null;
  /** Events that are not delivered yet, and events that were given up. Null: not known now. */
  waiting: number | null;
  deadLetters: number | null;
}

/** GET /console/api/overview. Its ETag names all but `at`. */
export interface Overview {
  at: number;
  /** Changes whenever the chain, a mint or a delivery moved: a page that shows those reads them again. */
  revision: string;
  /** The worst first. Empty: all is well. */
  problems: Problem[];
  registries: RegistryView[];
  /** Null while documents cannot be issued. */
  issuing: {
    /** Null: not known now. `inFlight`: sent, and not mined. `mined`: not final yet. */
    mints: { waiting: number; inFlight: number; mined: number; oldestSeconds: number | null } | null;
    signing: { waiting: number; busy: number; threads: number };
    wallet: { address: string; balance: string; currency: string; mintsAffordable: number | null } | null;
  } | null;
  subscriptions: { active: number; paused: number; gone: number };
  /** The last half hour. `lag`: blocks of the registry that is furthest behind. */
  plots: { lag: Sample[]; deliveriesPerMinute: Sample[] };
}

/** GET /console/api/facts: what does not change while the service runs. */
export interface Facts {
  network: { name: string; chainId: number; currency: string; isLocal: boolean; explorerUrl: string | null };
  /** The registry in which documents are issued, checksummed; null if none are. */
  registry: string | null;
  issuer: string | null;
  confirmations: number;
  canIssue: boolean;
  /** Accounts of a local node, for the form. Empty on a public network. */
  accounts: string[];
  version: string;
  /** Terms of a Bill of Lading, for the form, in the order of the context. */
  terms: string[];
}

/** The body of POST /console/api/validate: that of POST /create, as far as it is filled in. */
export interface ValidateBody {
  credentialSubject: unknown;
  owner: string;
  holder: string;
  remarks: string;
}

/** A problem of a request. `pointer` points into it: `/owner`, `/credentialSubject/blNumber`. */
export interface RequestProblem {
  pointer: string;
  code: string;
  message: string;
  /** Whether POST /create would refuse it. The others are recommendations of the strict validation. */
  isRefused: boolean;
}

/** Answer of POST /console/api/validate. */
export interface Validation {
  problems: RequestProblem[];
  remarkBytes: number;
  mostRemarkBytes: number;
}

/** GET /console/api/documents/{tokenId}/progress: how far issuing is. */
export interface IssuingProgress {
  tokenId: string;
  /** The first characters of the number of the Bill of Lading; null if it is not known. */
  blNumber: string | null;
  state: 'signed' | 'submitted' | 'mined' | 'final' | 'failed';
  createdAt: number;
  txHash: string | null;
  /** Blocks on top of the mint's block, of `confirmations`. Null before it is mined. */
  confirmedBlocks: number | null;
  failure: { code: string; message: string } | null;
}

/** The body of POST /console/api/token: an id in the registry, or a credential. */
export interface TokenQuestion {
  /** Any form of a token id. */
  tokenId?: string;
  /** `<chain id>:<address>`; by default the registry in which documents are issued. */
  registry?: string;
  /**
   * A credential of at most 64 KB, or only its `id` and `credentialStatus`, or an answer of POST /create. Its
   * id decrypts the remarks.
   */
  credential?: unknown;
}

/** An event of the chain, and where it is in each subscription that it is for. */
export interface EventView {
  id: string;
  /** Without `com.service.etr.`. */
  type: string;
  deliveries: {
    subscription: string;
    state: DeliveryState;
    attempts: number;
    lastError: string | null;
  }[];
}

/** One operation of a token. Addresses are checksummed. */
export interface OperationView extends Omit<Endorsement, 'remark'> {
  at: number;
  sender: string;
  /** Hex as on the chain, and the text that it is or decrypts to; null if it cannot be read as text. */
  remark: { hex: string; text: string | null; isEncrypted: boolean } | null;
  events: EventView[];
}

/** Answer of POST /console/api/token. */
export interface TokenView {
  tokenId: string;
  network: string;
  chainId: number;
  registry: string;
  explorerUrl: string | null;
  state: 'not minted' | 'in escrow' | 'returned to issuer' | 'shredded';
  isPaused: boolean;
  block: number;
  titleEscrow: string | null;
  beneficiary: string | null;
  holder: string | null;
  nominee: string | null;
  previousBeneficiary: string | null;
  previousHolder: string | null;
  /** The oldest first. */
  operations: OperationView[];
  /** Whether the operations go back to the mint. */
  isWhole: boolean;
  next: PossibleOperation[];
  /** Null without a credential. Its remarks are decrypted with it. */
  credentialId: string | null;
  /** How issuing went, if this service issued it. */
  issuing: IssuingProgress | null;
}

/** One delivery of one event to one subscription. */
export interface DeliveryView {
  eventId: string;
  type: string;
  registry: string;
  tokenId: string | null;
  subscription: string;
  state: DeliveryState;
  attempts: number;
  nextAttemptAt: number | null;
  lastAttemptAt: number | null;
  status: number | null;
  error: string | null;
}

/** GET /console/api/deliveries?state=&subscription=&limit=: the newest first. */
export interface DeliveryList {
  deliveries: DeliveryView[];
  /** Whether there are more than were asked for. */
  hasMore: boolean;
}

/** GET /console/api/events/{id}: an event with its body, and every attempt of each subscription. */
export interface EventDetails {
  eventId: string;
  type: string;
  registry: string;
  tokenId: string | null;
  /** The bytes that are sent, as text. */
  body: string;
  deliveries: (Delivery & {
    /** Headers as they would be sent now; values that are secret are `•••`. */
    headers: Record<string, string>;
  })[];
}

/** An answer of the verification. */
export interface AnswerView {
  outcome: Outcome;
  checks: Check[];
}

/** Answer of POST /console/api/verify. The body is the credential. */
export interface VerifyView {
  outcome: Outcome;
  documentIntegrity: AnswerView;
  issuerIdentity: AnswerView & { issuer: string | null };
  documentStatus: AnswerView & { tokenId: string | null; registry: string | null };
  /** Hosts and nodes outside of this service that were asked, without keys. */
  lookedUp: string[];
  shown: Record<string, unknown> | null;
}
