import { z } from 'zod';
import { DERIVE_REQUEST, VERIFY_REQUEST } from '../../answers/credential-requests';
import { CREATED_EXAMPLE, ISSUANCE_STATE, TOKEN_ID_PATH } from './documents';
import { DELIVERY_STATE } from './deliveries';
import { chapter, component, json } from './operation';
import { ADDRESS, COUNT, HASH, REGISTRY_NAME, TEXT, TIME, TOKEN_ID_HEX } from './values';

const ROLES = z.strictObject({
  beneficiary: ADDRESS.optional(),
  holder: ADDRESS.optional(),
  nominee: ADDRESS.optional(),
});

const REMARK_KIND = z.enum(['none', 'text', 'plain text', 'default key', 'undecipherable']).meta({
  description:
    '`text`: encrypted under the id of the credential; `plain text`: not encrypted; `default key`: ' +
    'encrypted under a key that everybody has.',
});

const EVENT = z.strictObject({
  id: TEXT,
  type: TEXT,
  deliveries: z
    .array(
      z.strictObject({
        subscription: TEXT,
        state: DELIVERY_STATE,
        attempts: COUNT,
        error: TEXT.nullable().meta({ description: 'Error of the last attempt.' }),
      }),
    )
    .optional()
    .meta({ description: 'Only with ADMIN_API_KEY.' }),
});

const ENDORSEMENT = z.strictObject({
  time: TEXT.meta({ format: 'date-time', description: "Time of the operation's block." }),
  operation: TEXT,
  before: ROLES,
  after: ROLES,
  sender: ADDRESS,
  blockNumber: COUNT,
  blockHash: HASH,
  transactionHash: HASH,
  remark: TEXT.meta({ description: 'Its bytes: `0x` and hexadecimal digits.' }),
  decrypted: z
    .strictObject({ kind: REMARK_KIND, text: TEXT.optional() })
    .optional()
    .meta({ description: 'Absent if the id of the credential is needed to read the remark.' }),
  events: z.array(EVENT).meta({ description: 'The events of its transaction that this service recorded.' }),
});

const STATE = z.strictObject({
  state: z.enum(['not minted', 'in escrow', 'returned to issuer', 'shredded']),
  block: COUNT.meta({ description: 'The block at which it was read.' }),
  isPaused: z.boolean().meta({ description: 'Whether the registry accepts no operation.' }),
  titleEscrow: ADDRESS.optional(),
  beneficiary: ADDRESS.optional(),
  holder: ADDRESS.optional(),
  nominee: ADDRESS.optional(),
  previousBeneficiary: ADDRESS.optional(),
  previousHolder: ADDRESS.optional(),
});

const ISSUING = z.strictObject({
  tokenId: TOKEN_ID_HEX,
  blNumber: TEXT.nullable(),
  state: ISSUANCE_STATE,
  createdAt: TIME,
  txHash: HASH.nullable(),
  confirmedBlocks: COUNT.nullable().meta({ description: "Blocks on top of the mint's block." }),
  failure: z.strictObject({ code: TEXT, message: TEXT }).nullable(),
});

const TOKEN = component('Token', {
  network: TEXT,
  chainId: COUNT,
  registry: ADDRESS,
  tokenId: TEXT.meta({ description: 'In decimal digits.' }),
  tokenIdHex: TOKEN_ID_HEX,
  explorerUrl: TEXT.nullable().meta({ description: 'The block explorer of the network.' }),
  isWhole: z.boolean().meta({ description: 'Whether `endorsements` goes back to the mint.' }),
  endorsements: z.array(ENDORSEMENT).meta({ description: 'The endorsement chain, the oldest first.' }),
  state: STATE,
  next: z
    .array(
      z.strictObject({
        operation: TEXT,
        by: TEXT.meta({ description: 'An address, or a role of the registry.' }),
        whom: TEXT.optional(),
      }),
    )
    .meta({ description: 'The operations that are possible next.' }),
  issuing: ISSUING.nullable().meta({ description: 'The document, if this service issued it.' }),
});

const OUTCOME = z.enum(['valid', 'invalid', 'could not tell']);

const ANSWER = component('VerificationAnswer', {
  outcome: OUTCOME,
  checks: z.array(z.strictObject({ check: TEXT, outcome: OUTCOME, found: TEXT })),
});

const VERIFICATION = component('VerificationResult', {
  verified: z.boolean().meta({ description: 'Whether all three answers are `valid`.' }),
  outcome: OUTCOME,
  documentIntegrity: ANSWER.meta({ description: 'Whether it is as it was signed.' }),
  issuerIdentity: z
    .strictObject({ ...ANSWER.shape, issuer: TEXT.nullable() })
    .meta({ description: 'Whether the named issuer publishes the key.' }),
  documentStatus: z
    .strictObject({
      ...ANSWER.shape,
      tokenId: TOKEN_ID_HEX.nullable(),
      registry: REGISTRY_NAME.nullable(),
    })
    .meta({ description: 'Whether its token is in circulation, and whether its period has ended.' }),
  lookedUp: z
    .array(TEXT)
    .meta({ description: 'Addresses outside of the service that were asked, without keys.' }),
  shown: z
    .record(TEXT, z.unknown())
    .nullable()
    .meta({ description: 'The version that was verified: all of it, for a credential with a base proof.' }),
});

const CREDENTIAL = CREATED_EXAMPLE.signedW3CDocument;

/** Questions for tokens. */
export const TOKENS = chapter('Tokens', 'any key', {
  getToken: {
    method: 'get',
    path: '/tokens/{tokenId}',
    summary: 'Show a token',
    description: `Reads the state of the token and its endorsement chain from its chain. The same as
\`tdoc token --json\`, with the events and the document that this service has.

Without parameters, the token is sought in the registry in which the service issues documents
(TOKEN_REGISTRY_ADDRESS, on the chain of NET). For a token of another registry give \`registry\`, and
\`chainId\` if it is on another chain, as \`credentialStatus\` of the credential, or \`GET /registries\`, has
them.`,
    pathParameters: TOKEN_ID_PATH,
    query: z.object({
      registry: TEXT.optional().meta({ description: 'The address of the registry.' }),
      chainId: z
        .string()
        .regex(/^[1-9]\d{0,14}$/, { error: 'must be the number of a chain' })
        .transform(Number)
        .optional()
        .meta({ description: 'The chain of `registry`; that of NET if absent.' }),
    }),
    headers: {
      'X-Credential-Id': z.string().meta({
        description:
          'The `id` of the credential. It decrypts the remarks, and is not logged. An id that has `%`, or ' +
          'characters that are not visible ASCII, is percent-encoded.',
        examples: ['urn:uuid:01a20301-e52c-7491-a676-2ab8454428ab'],
      }),
    },
    answers: {
      200: json(
        'The token. It was minted, or a document with it was issued here, also one that failed.',
        TOKEN,
      ),
    },
    errors: {
      400: ['TOKEN_ID_INVALID', 'NETWORK_NOT_CONFIGURED', 'REGISTRY_MISSING', 'REGISTRY_INVALID'],
      404: ['TOKEN_UNKNOWN'],
      500: [
        'RPC_UNREACHABLE',
        'RPC_KEY_REFUSED',
        'NODE_FAILED',
        'CHAIN_ID_MISMATCH',
        'REGISTRY_MISSING',
        'REGISTRY_INVALID',
        'BLOCK_CHANGED',
        'TOKEN_HISTORY_INCOMPLETE',
        'TOKEN_OWNER_UNEXPECTED',
        'DATABASE_LOCKED',
        'DATABASE_FULL',
      ],
      503: ['BUSY'],
    },
  },
});

/** Checks of credentials. */
export const CREDENTIALS = chapter('Credentials', 'any key', {
  verifyCredential: {
    method: 'post',
    path: '/credentials/verify',
    summary: 'Verify a credential',
    description: `Whether the document is as it was signed, who signed it, and the state of its token. The
service asks a configured node of the token's network, the issuer's host, and the hosts of contexts that it
does not know. It connects to those hosts at public addresses only, unless its operator allows private ones
(ALLOW_PRIVATE_SINKS), or its network is local: then this machine may be asked. A verdict is 200, whatever it
says. "could not tell" means that something could not be asked: try again later.`,
    isHarmless: true,
    body: {
      kind: 'document',
      schema: VERIFY_REQUEST.meta({ id: 'VerifyRequest' }),
      examples: { 'a credential': { verifiableCredential: CREDENTIAL } },
    },
    answers: {
      200: json('The verdict.', VERIFICATION),
    },
    errors: {
      400: ['REQUEST_FIELD_INVALID', 'CREDENTIAL_INVALID'],
      500: ['CHECK_ENDED'],
      503: ['BUSY'],
    },
  },
  deriveCredential: {
    method: 'post',
    path: '/credentials/derive',
    summary: 'Derive the version of a credential that a holder shows',
    description: `It discloses what the pointers name, and what the issuer made mandatory. The service holds
no key for it: a version is derived from the base proof of the credential.`,
    isHarmless: true,
    body: {
      kind: 'document',
      schema: DERIVE_REQUEST.meta({ id: 'DeriveRequest' }),
      examples: {
        'one number': {
          verifiableCredential: CREDENTIAL,
          options: { selectivePointers: ['/credentialSubject/blNumber'] },
        },
      },
    },
    answers: {
      201: json(
        'The derived credential.',
        component('DerivedCredential', { verifiableCredential: z.record(TEXT, z.unknown()) }),
      ),
    },
    errors: {
      400: [
        'REQUEST_FIELD_INVALID',
        'CREDENTIAL_INVALID',
        'CREDENTIAL_ALREADY_DERIVED',
        'PROOF_UNSUPPORTED',
        'POINTER_INVALID',
        'POINTER_MATCHES_NOTHING',
        'DERIVATION_FAILED',
      ],
      500: ['CHECK_ENDED'],
      503: ['BUSY', 'CONTEXT_UNAVAILABLE'],
    },
  },
});
