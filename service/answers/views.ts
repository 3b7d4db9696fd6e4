import * as z from 'zod';
import { evidenceFileSchema } from '../evidence/evidence-file';
import type { DecryptedRemark } from '../issuance/remarks';
import { DELIVERY_STATES, UNDELIVERED_STATES } from '../outbox/deliveries';
import type { TokenState } from '../registry/read-token-state';
import type { PossibleOperation } from '../token/possible-operations';
import type { DatedEndorsement } from '../token/read-token-history';

// The JSON of answers: service/http/description/ publishes the schemas.

/** Lower-case or checksummed address. */
export const ADDRESS = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
/** Hash of a transaction. */
export const HASH = z.string().regex(/^0x[0-9a-f]{64}$/);
/** ISO 8601 in UTC, with milliseconds. */
export const TIME = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: 'date-time' });
/** A token id in the form of `credentialStatus.tokenId`. */
export const TOKEN_ID_HEX = z.string().regex(/^[0-9a-f]{64}$/);
/** A number of blocks, events or other things. */
export const COUNT = z.int().nonnegative();
/** Chain id and lower-case address, such as `80002:0xd805…`. */
export const REGISTRY_NAME = z.string().regex(/^[1-9]\d*:0x[0-9a-f]{40}$/);

/** The registry of an event; `operations` for operational events, which are of none. */
export const EVENT_ORIGIN = z.string().regex(/^([1-9]\d*:0x[0-9a-f]{40}|operations)$/);

/** Text of no particular form. */
export const TEXT = z.string();

/** A schema of objects that have no other members. It is a component of the description. */
export function component<const Members extends z.core.$ZodLooseShape>(id: string, members: Members) {
  return z.strictObject(members).meta({ id });
}

/** How far issuing of a document is. */
export const ISSUANCE_STATE = z
  .enum(['signed', 'submitted', 'mined', 'final', 'failed'], {
    error: 'must be one of signed, submitted, mined, final, failed',
  })
  .describe(
    '`signed`: stored, and no transaction is known to be sent; `submitted`: its mint was sent; `mined`: ' +
      'its token exists; `final`: its block is final by CONFIRMATIONS; `failed`: it will never exist.',
  );

/** Where an event is in a subscription. */
export const DELIVERY_STATE = z
  .enum(DELIVERY_STATES)
  .describe(
    '`waiting`: not delivered yet, and no attempt has failed; `failed`: an attempt failed, and another ' +
      'follows; `dead`: given up, and a dead letter; `delivered`: the subscriber has it; `orphaned`: a ' +
      'reorganisation of the chain took its block away.',
  );

/** The names of an event. */
export const EVENT_NAMES = {
  id: TEXT,
  type: TEXT,
  registry: EVENT_ORIGIN,
  tokenId: TEXT.nullable().describe('In decimal digits; null for events of no token.'),
  tokenIdHex: TOKEN_ID_HEX.nullable(),
};

/** A delivery with every attempt. */
export const DELIVERY = {
  subscription: TEXT,
  state: DELIVERY_STATE,
  nextAttemptAt: TIME.nullable().describe(
    'Null if it does not wait, or waits for another event of its token.',
  ),
  attempts: z
    .array(
      component('Attempt', {
        attempt: COUNT,
        attemptedAt: TIME,
        status: z.int().nullable().describe('Null if there was no answer.'),
        error: TEXT.nullable().describe('Null after a success.'),
        milliseconds: z.number(),
      }),
    )
    .describe('The oldest first, successes too.'),
};

/** The state of an event that a subscriber has not got. */
export const UNDELIVERED_STATE = z.enum(UNDELIVERED_STATES, {
  error: `must be one of ${UNDELIVERED_STATES.join(', ')}`,
});

/** An event that a subscriber has not got. */
export const UNDELIVERED = z.strictObject({
  id: TEXT,
  type: TEXT,
  registry: EVENT_ORIGIN,
  tokenId: TEXT.describe(
    'In decimal digits; `0` for events of the registry. The subject of an operational event.',
  ),
  state: UNDELIVERED_STATE,
  attempts: COUNT,
  nextAttemptAt: TIME.nullable().describe(
    'Null for a dead letter, and if the event waits for another one of its token.',
  ),
  status: z.int().nullable().describe('Status of the last answer.'),
  error: TEXT.nullable().describe('Error of the last attempt.'),
});
export type Undelivered = z.infer<typeof UNDELIVERED>;

export type EventNames = Pick<EventDetails, keyof typeof EVENT_NAMES>;
export type DeliveryView = Omit<EventDetails['deliveries'][number], 'headers'>;

/** An event with its body, and the headers of each delivery as they would be sent now. */
export const EVENT_DETAILS = component('Event', {
  ...EVENT_NAMES,
  body: TEXT.describe('The bytes that are sent, as text.'),
  deliveries: z.array(
    z.strictObject({
      ...DELIVERY,
      headers: z.record(TEXT, TEXT).describe('As they would be sent now. Values that are secret are `•••`.'),
    }),
  ),
});
export type EventDetails = z.infer<typeof EVENT_DETAILS>;

const ROLES = z.strictObject({
  beneficiary: ADDRESS.optional(),
  holder: ADDRESS.optional(),
  nominee: ADDRESS.optional(),
});

const REMARK_KIND = z
  .enum(['none', 'text', 'plain text', 'default key', 'undecipherable'])
  .describe(
    '`text`: encrypted under the id of the credential; `plain text`: not encrypted; `default key`: ' +
      'encrypted under a key that everybody has.',
  );

const EVENT_OF_TOKEN = z.strictObject({
  id: TEXT,
  type: TEXT,
  recordedAt: TIME,
  deliveries: z
    .array(
      z.strictObject({
        subscription: TEXT,
        state: DELIVERY_STATE,
        attempts: COUNT,
        error: TEXT.nullable().describe('Error of the last attempt.'),
        eachAttempt: DELIVERY.attempts,
      }),
    )
    .optional()
    .describe('Only with ADMIN_API_KEY.'),
});

const ENDORSEMENT = z.strictObject({
  time: TEXT.meta({ format: 'date-time', description: "Time of the operation's block." }),
  operation: TEXT,
  by: ADDRESS.optional().describe(
    'The account that did it. Absent for an operation of a role of the registry.',
  ),
  before: ROLES,
  after: ROLES,
  sender: ADDRESS.describe('The account that sent the transaction. Not that of `by` if code made the call.'),
  blockNumber: COUNT,
  blockHash: HASH,
  transactionHash: HASH,
  remark: TEXT.describe('Its bytes: `0x` and hexadecimal digits.'),
  decrypted: z
    .strictObject({ kind: REMARK_KIND, text: TEXT.optional() })
    .optional()
    .describe('Absent if the id of the credential is needed to read the remark.'),
  events: z.array(EVENT_OF_TOKEN).describe('The events of its transaction that this service recorded.'),
});

const STATE = z.strictObject({
  state: z.enum(['not minted', 'in escrow', 'returned to issuer', 'shredded']),
  block: COUNT.describe('The block at which it was read.'),
  isPaused: z.boolean().describe('Whether the registry accepts no operation.'),
  titleEscrow: ADDRESS.optional(),
  ...ROLES.shape,
  previousBeneficiary: ADDRESS.optional(),
  previousHolder: ADDRESS.optional(),
});

const PROGRESS = z.strictObject({
  tokenId: TOKEN_ID_HEX,
  blNumber: TEXT.nullable(),
  state: ISSUANCE_STATE,
  createdAt: TIME,
  txHash: HASH.nullable(),
  confirmedBlocks: COUNT.nullable().describe("Blocks on top of the mint's block."),
  failure: z.strictObject({ code: TEXT, message: TEXT }).nullable(),
  traceId: TEXT.nullable().describe('The W3C trace that the document is in.'),
  receivedAt: TIME.nullable().describe('When the request came.'),
  signingAt: TIME.nullable().describe('When its signing began.'),
  signedAt: TIME.nullable().describe('When its signing ended.'),
  sentAt: TIME.nullable().describe('When the transaction was signed that made the token.'),
  minedAt: TIME.nullable().describe('When the transaction was seen mined.'),
});

/** The proofs of what happened to a token. */
export const EVIDENCE = evidenceFileSchema.meta({ id: 'Evidence' });

/** A token with the facts that the service knows about it. */
export const KNOWN_TOKEN = component('Token', {
  network: TEXT,
  chainId: COUNT,
  registry: ADDRESS,
  tokenId: TEXT.describe('In decimal digits.'),
  tokenIdHex: TOKEN_ID_HEX,
  explorerUrl: TEXT.nullable().describe('The block explorer of the network.'),
  isWhole: z.boolean().describe('Whether `endorsements` goes back to the mint.'),
  endorsements: z.array(ENDORSEMENT).describe('The endorsement chain, the oldest first.'),
  accountsWithCode: z
    .array(
      z.strictObject({
        address: ADDRESS,
        delegate: ADDRESS.optional().describe('The contract whose code it runs (EIP-7702).'),
      }),
    )
    .describe(
      'Of the accounts that have a role now, and of those for which another sent a transaction: those ' +
        'that have code now.',
    ),
  state: STATE,
  next: z
    .array(
      z.strictObject({
        operation: TEXT,
        by: TEXT.describe('An address, or a role of the registry.'),
        whom: TEXT.optional(),
      }),
    )
    .describe('The operations that are possible next.'),
  issuing: PROGRESS.nullable().describe('The document, if this service issued it.'),
});

type Described = z.infer<typeof KNOWN_TOKEN>;

/** A token, as `GET /tokens/{tokenId}`, the console and `tdoc token --json` show it. */
export interface TokenView extends Omit<Described, 'explorerUrl' | 'issuing' | 'endorsements'> {
  endorsements: EndorsementView[];
  state: TokenState;
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

/** A token with the facts that the service knows about it. */
export interface KnownToken extends TokenView, Pick<Described, 'explorerUrl' | 'issuing'> {
  endorsements: (EndorsementView & { events: EventOfToken[] })[];
}

/** How far issuing of a document is. `confirmedBlocks`: null before it is mined. */
export type IssuingProgress = z.infer<typeof PROGRESS>;

/** An event beside the operation that made it. Its deliveries are absent if the caller may not see them. */
export type EventOfToken = z.infer<typeof EVENT_OF_TOKEN>;

const OUTCOME = z.enum(['valid', 'invalid', 'could not tell']);

const ANSWER = component('VerificationAnswer', {
  outcome: OUTCOME,
  checks: z.array(z.strictObject({ check: TEXT, outcome: OUTCOME, found: TEXT })),
});

/** The verdict about a credential. Texts may contain what strangers wrote. */
export const VERIFICATION = component('VerificationResult', {
  verified: z.boolean().describe('Whether all three answers are `valid`.'),
  outcome: OUTCOME,
  documentIntegrity: ANSWER.describe('Whether it is as it was signed.'),
  issuerIdentity: z
    .strictObject({ ...ANSWER.shape, issuer: TEXT.nullable() })
    .describe('Whether the named issuer publishes the key.'),
  documentStatus: z
    .strictObject({
      ...ANSWER.shape,
      tokenId: TOKEN_ID_HEX.nullable(),
      registry: REGISTRY_NAME.nullable(),
    })
    .describe('Whether its token is in circulation, and whether its period has ended.'),
  lookedUp: z.array(TEXT).describe('Addresses outside of the service that were asked, without keys.'),
  shown: z
    .record(TEXT, z.unknown())
    .nullable()
    .describe('The version that was verified: all of it, for a credential with a base proof.'),
});

export type VerifiedView = z.infer<typeof VERIFICATION>;
