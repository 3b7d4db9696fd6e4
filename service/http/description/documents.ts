import * as z from 'zod';
import { parsed } from '../../config/setting-types';
import { CREATE_REQUEST } from '../../issuance/create-request';
import { component, ISSUANCE_STATE, ADDRESS, HASH, TEXT, TIME, TOKEN_ID_HEX } from '../../answers/views';
import type { IssuancesPlace } from '../../journal/read-issuances';
import EXAMPLES from './examples.json';
import { chapter, json, OF_DATABASE, type AnswerHeader } from './operation';
import { page, PAGE_LIMIT, position } from './values';

const ISSUANCE = component('Issuance', {
  tokenId: TOKEN_ID_HEX,
  id: TEXT.describe('The id of the credential.'),
  blNumber: TEXT.optional().describe('The first 100 characters of the number in the subject.'),
  owner: ADDRESS.describe('The beneficiary, as in the request.'),
  holder: ADDRESS.describe('The holder, as in the request.'),
  state: ISSUANCE_STATE,
  createdAt: TIME,
  txHash: HASH.optional(),
  failure: z.strictObject({ code: TEXT, message: TEXT }).optional(),
});

/** The signed credential (docs/specification.md, section 3). */
const SIGNED_CREDENTIAL = z
  .strictObject({
    '@context': z.array(TEXT),
    type: z.array(z.literal('VerifiableCredential')).length(1),
    credentialStatus: z.strictObject({
      type: z.literal('TransferableRecords'),
      tokenNetwork: z.strictObject({
        chain: TEXT.describe("Currency symbol of the token's network."),
        chainId: TEXT,
      }),
      tokenRegistry: ADDRESS,
      tokenId: TOKEN_ID_HEX,
    }),
    renderMethod: z.array(
      z.strictObject({ id: TEXT, type: z.literal('EMBEDDED_RENDERER'), templateName: TEXT }),
    ),
    credentialSubject: z.record(TEXT, z.unknown()).describe('As in the request.'),
    validFrom: TIME,
    validUntil: TIME.describe('Three calendar months after `validFrom`.'),
    issuer: TEXT.describe('The did:web of the issuer.'),
    id: TEXT.describe('`urn:uuid:` and a UUID. It is the key that decrypts the remarks.'),
    proof: z.strictObject({
      type: z.literal('DataIntegrityProof'),
      created: TEXT,
      verificationMethod: TEXT,
      cryptosuite: z.literal('ecdsa-sd-2023'),
      proofPurpose: z.literal('assertionMethod'),
      proofValue: TEXT,
    }),
  })
  .describe(
    'A W3C Verifiable Credential (data model 2.0) with a base proof. Keep it: its holder derives from it ' +
      'the credentials that others verify.',
  );

/** An answer with an issued document. */
const ISSUED_DOCUMENT = component('IssuedDocument', {
  signedW3CDocument: SIGNED_CREDENTIAL,
  txHash: HASH.describe('The transaction that minted the token.'),
});

/** `created` answers `minimal`. Its `proofValue` is shortened. */
const CREATED_TOKEN = EXAMPLES.created.signedW3CDocument.credentialStatus.tokenId;
/** The parameter of the paths of one token. */
export const TOKEN_ID_PATH = {
  tokenId: {
    description: 'The token: 64 hexadecimal digits, with or without `0x`, or decimal digits.',
    example: CREATED_TOKEN,
  },
};
const RETRY_AFTER: AnswerHeader = { description: 'Seconds after which to ask again.', example: '1' };

/** An optional Idempotency-Key. */
export const IDEMPOTENCY_KEY = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/)
  .meta({
    description:
      'The same key with the same bytes gets the same document, however often it is sent, also at the same ' +
      'time. With other bytes it is 422. The key is kept as long as the document; that of a request that ' +
      'was refused, or that failed for good, is free. Recommended.',
    examples: ['8e03978e-40d5-43dd-bc93-6894a57f9324'],
  });

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;

/** Date.parse would take 30 February for 2 March. */
const CALENDAR = z.iso.datetime({ offset: true });

/** Epoch milliseconds; undefined for a text that is no time. */
function timeOf(text: string): number | undefined {
  const isReal = RFC3339.test(text) && CALENDAR.safeParse(text.toUpperCase()).success;
  const at = isReal ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? undefined : at;
}

/** A time, which becomes epoch milliseconds. */
function time(description: string) {
  return parsed(timeOf, 'must be a time such as 2026-05-01T12:00:00Z (in a URL, write + as %2B)')
    .optional()
    .meta({ description: `${description}, in RFC 3339: \`2026-05-01T00:00:00Z\`.`, format: 'date-time' });
}

/** Why a token is not made. */
const OF_MINT = [
  'MINT_SIMULATION_FAILED',
  'REGISTRY_MISSING',
  'MINT_NOT_SENT',
  'TRANSACTION_REJECTED',
  'MINT_REVERTED',
] as const;

/** Operations of documents. */
export const DOCUMENTS = chapter('Documents', 'issuer', {
  createDocument: {
    request: 'POST /create/{documentId}',
    summary: 'Issue a document',
    access: 'issuer if set',
    pathParameters: {
      documentId: {
        description: 'The type of document: `BILL_OF_LADING`, in upper or lower case.',
        example: 'BILL_OF_LADING',
      },
    },
    headers: {
      'Idempotency-Key': IDEMPOTENCY_KEY,
      traceparent: z.string().meta({
        description:
          'The W3C trace that the document goes on in. Without one, or if it is invalid, a trace begins.',
        examples: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
      }),
      Prefer: z.string().meta({
        description: '`respond-async`: answer 202 without waiting for the mint.',
        examples: ['respond-async'],
      }),
    },
    body: {
      kind: 'document',
      schema: CREATE_REQUEST.meta({ id: 'CreateRequest' }),
      examples: EXAMPLES.requests,
    },
    answers: {
      200: json(
        'The document is signed, and its token is mined. A reorganisation may still remove the mint until ' +
          '`GET /documents/{tokenId}` answers `X-Document-State: final`; the service mints it again then.',
        ISSUED_DOCUMENT,
        { examples: { issued: EXAMPLES.created } },
      ),
      202: json(
        'Only with `Prefer: respond-async`. The document is stored, and will be minted.',
        component('AcceptedDocument', { tokenId: TOKEN_ID_HEX }),
        {
          examples: { accepted: { tokenId: CREATED_TOKEN } },
          headers: {
            Location: { description: 'The path of the document.', example: '/documents/68e671ae…' },
            'Preference-Applied': { description: 'Always `respond-async`.', example: 'respond-async' },
            'Retry-After': RETRY_AFTER,
          },
        },
      ),
    },
    errors: {
      400: ['REQUEST_FIELD_INVALID', 'IDEMPOTENCY_KEY_INVALID'],
      422: ['IDEMPOTENCY_KEY_REUSED'],
      500: [
        'DOCUMENT_NOT_SUPPORTED',
        'NOT_CONFIGURED',
        'TEXT_NOT_PROTECTED',
        'SUBJECT_EMPTY',
        'SUBJECT_VALUE_INVALID',
        'SUBJECT_TERM_UNDEFINED',
        'CONTEXT_UNKNOWN',
        'REMARK_TOO_LONG',
        'SIGNING_FAILED',
        'SIGNING_WORKER_LOST',
        'CHAIN_ID_MISMATCH',
        'ESCROWS_UNSUPPORTED',
        'LOGS_PRUNED',
        'RPC_KEY_REFUSED',
        'RPC_UNREACHABLE',
        'FEES_UNKNOWN',
        ...OF_MINT,
        'MINT_STILL_WAITING',
        'MINT_NOT_CONFIRMED',
        'ISSUANCE_UNKNOWN',
        'STORING_INTERRUPTED',
        ...OF_DATABASE,
      ],
      503: ['BUSY', 'SIGNER_UNREACHABLE', 'SIGNER_REFUSED', 'SIGNER_PIN_REFUSED', 'SIGNER_ANSWER_WRONG'],
    },
  },
  getDocument: {
    request: 'GET /documents/{tokenId}',
    summary: 'Get an issued document again',
    description: 'The answer of `POST /create` again, for a caller that did not get it.',
    pathParameters: TOKEN_ID_PATH,
    answers: {
      200: json(
        'The document. An answer that breaks off is none: the document was purged while it was sent.',
        ISSUED_DOCUMENT,
        {
          headers: {
            'X-Document-State': {
              description:
                '`final`, or `mined` while a reorganisation of the chain may still remove the mint.',
              example: 'final',
            },
          },
        },
      ),
      202: json(
        'The document is being issued.',
        component('IssuingDocument', { status: z.enum(['signed', 'submitted']) }),
        { examples: { submitted: { status: 'submitted' } }, headers: { 'Retry-After': RETRY_AFTER } },
      ),
    },
    errors: { 400: ['TOKEN_ID_INVALID'], 404: ['DOCUMENT_UNKNOWN'], 410: [...OF_MINT, 'INTERNAL'] },
  },
  listDocuments: {
    request: 'GET /documents',
    summary: 'List what was issued',
    description:
      'The newest first, without the documents. With it you find a document whose answer was lost, if ' +
      'its request had no `Idempotency-Key`: by time, owner and holder, and then by the document itself. A ' +
      'page looks at 5,000 documents at most, so it may be short, or empty, although more follow.',
    query: z.object({
      state: ISSUANCE_STATE.optional(),
      since: time('Created at this time or later'),
      until: time('Created before this time'),
      limit: PAGE_LIMIT,
      after: position<IssuancesPlace>(),
    }),
    answers: {
      200: page('A page.', z.array(ISSUANCE).meta({ id: 'Issuances' }), '/documents?after=2Zb…'),
    },
  },
});
