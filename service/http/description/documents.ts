import { z } from 'zod';
import { CREATE_REQUEST } from '../../issuance/create-request';
import { CREATE_EXAMPLE, CREATED_EXAMPLE } from './examples';
import { ISSUED_DOCUMENT } from './issued-document';
import type { AnswerHeader, Operation } from './operation';
import { linkHeader, PAGE_LIMIT, pagePosition, ADDRESS, HASH, TEXT, TIME, TOKEN_ID_HEX } from './values';

export const ISSUANCE_STATE = z
  .enum(['signed', 'submitted', 'mined', 'final', 'failed'], {
    error: 'must be one of signed, submitted, mined, final, failed',
  })
  .meta({
    description:
      '`signed`: stored, and no transaction is known to be sent; `submitted`: its mint was sent; `mined`: ' +
      'its token exists; `final`: its block has CONFIRMATIONS blocks on top; `failed`: it will never exist.',
  });

const ISSUANCE = z
  .strictObject({
    tokenId: TOKEN_ID_HEX,
    id: TEXT.meta({ description: 'The id of the credential.' }),
    blNumber: TEXT.optional().meta({ description: 'The first 100 characters of the number in the subject.' }),
    owner: ADDRESS.meta({ description: 'The beneficiary, as in the request.' }),
    holder: ADDRESS.meta({ description: 'The holder, as in the request.' }),
    state: ISSUANCE_STATE,
    createdAt: TIME,
    txHash: HASH.optional(),
    failure: z.strictObject({ code: TEXT, message: TEXT }).optional(),
  })
  .meta({ id: 'Issuance' });

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

export const CREATED_TOKEN = CREATED_EXAMPLE.signedW3CDocument.credentialStatus.tokenId;
const RETRY_AFTER: AnswerHeader = { description: 'Seconds after which to ask again.', example: '1' };

/** POST /create/{documentId} */
export const CREATE_DOCUMENT: Operation = {
  id: 'createDocument',
  tag: 'Documents',
  method: 'post',
  path: '/create/{documentId}',
  summary: 'Issue a document',
  description: `Signs a credential with the subject, mints its token in the token registry, and answers when
the mint is mined. That takes as long as the network takes for a block, up to ten minutes if it makes none:
wait for 15 minutes, or send an \`Idempotency-Key\` and choose any timeout.

\`\`\`sh
curl -s https://carrier.example/create/BILL_OF_LADING \\
  -H 'Authorization: Bearer <API_KEY>' -H 'Content-Type: application/json' \\
  -H 'Idempotency-Key: 8e03978e-40d5-43dd-bc93-6894a57f9324' -d @bill-of-lading.json
\`\`\`

**Sending again.** With an \`Idempotency-Key\`, send the same request again after any answer or none. Without
a key, a status from 400 to 499 means that nothing was issued: correct the request, or send it again as it is
after a 408. Send it again as it is after a 503. A 500 made no token and may be sent again when its cause is
gone, except the codes MINT_STILL_WAITING, MINT_NOT_CONFIRMED, INTERNAL and ISSUANCE_UNKNOWN. After these, ask
for the document of \`X-Token-Id\`. Without that header, and after no answer at all, look at
[what was issued](#operation-listDocuments) first, because a second request makes a second token.
A caller who disconnects before the document is stored cancels it; after five minutes the list has it, or
never will.

**Without waiting.** With \`Prefer: respond-async\` (RFC 7240) the answer is 202 as soon as the document is
stored; ask at \`Location\` for it. It will be minted even if the service stops right after the answer. The
same key is answered 202 again, also when the document is mined. The preference has no effect if the service
has no API_KEY, because \`GET /documents/{tokenId}\` does not exist then.

**A 500** has the message "Internal server error". Below, the codes say who has to act. The log of the service
has the reason, in the line with the answer's \`X-Request-Id\`.`,
  access: 'issuer if set',
  pathParameters: {
    documentId: {
      description: 'The type of document: `BILL_OF_LADING`, in upper or lower case.',
      example: 'BILL_OF_LADING',
    },
  },
  headers: {
    'Idempotency-Key': IDEMPOTENCY_KEY,
    Prefer: z.string().meta({
      description: '`respond-async`: answer 202 without waiting for the mint.',
      examples: ['respond-async'],
    }),
  },
  body: { kind: 'document', schema: CREATE_REQUEST.meta({ id: 'CreateRequest' }), examples: CREATE_EXAMPLE },
  answers: {
    200: {
      description:
        'The document is signed, and its token is mined. A reorganisation may still remove the mint until ' +
        '`GET /documents/{tokenId}` answers `X-Document-State: final`; the service mints it again then.',
      content: {
        mediaType: 'application/json',
        schema: ISSUED_DOCUMENT,
        examples: { issued: CREATED_EXAMPLE },
      },
    },
    202: {
      description: 'Only with `Prefer: respond-async`. The document is stored, and will be minted.',
      content: {
        mediaType: 'application/json',
        schema: z.strictObject({ tokenId: TOKEN_ID_HEX }).meta({ id: 'AcceptedDocument' }),
        examples: { accepted: { tokenId: CREATED_TOKEN } },
      },
      headers: {
        Location: { description: 'The path of the document.', example: '/documents/68e671ae…' },
        'Preference-Applied': { description: 'Always `respond-async`.', example: 'respond-async' },
        'Retry-After': RETRY_AFTER,
      },
    },
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
      'REGISTRY_MISSING',
      'RPC_KEY_REFUSED',
      'RPC_UNREACHABLE',
      'FEES_UNKNOWN',
      'MINT_SIMULATION_FAILED',
      'MINT_NOT_SENT',
      'TRANSACTION_REJECTED',
      'MINT_REVERTED',
      'MINT_STILL_WAITING',
      'MINT_NOT_CONFIRMED',
      'ISSUANCE_UNKNOWN',
      'STORING_INTERRUPTED',
      'DATABASE_LOCKED',
      'DATABASE_FULL',
    ],
    503: ['BUSY'],
  },
};

/** GET /documents/{tokenId} */
export const GET_DOCUMENT: Operation = {
  id: 'getDocument',
  tag: 'Documents',
  method: 'get',
  path: '/documents/{tokenId}',
  summary: 'Get an issued document again',
  description: 'The answer of `POST /create` again, for a caller that did not get it.',
  access: 'issuer',
  pathParameters: {
    tokenId: {
      description: 'The token: 64 hexadecimal digits, with or without `0x`, or decimal digits.',
      example: CREATED_TOKEN,
    },
  },
  answers: {
    200: {
      description:
        'The document. An answer that breaks off is none: the document was purged while it was sent.',
      content: { mediaType: 'application/json', schema: ISSUED_DOCUMENT },
      headers: {
        'X-Document-State': {
          description: '`final`, or `mined` while a reorganisation of the chain may still remove the mint.',
          example: 'final',
        },
      },
    },
    202: {
      description: 'The document is being issued.',
      content: {
        mediaType: 'application/json',
        schema: z.strictObject({ status: z.enum(['signed', 'submitted']) }).meta({ id: 'IssuingDocument' }),
        examples: { submitted: { status: 'submitted' } },
      },
      headers: { 'Retry-After': RETRY_AFTER },
    },
  },
  errors: {
    400: ['TOKEN_ID_INVALID'],
    404: ['DOCUMENT_UNKNOWN'],
    410: [
      'MINT_SIMULATION_FAILED',
      'REGISTRY_MISSING',
      'MINT_NOT_SENT',
      'TRANSACTION_REJECTED',
      'MINT_REVERTED',
      'INTERNAL',
    ],
  },
};

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;

/** Date.parse would take 30 February for 2 March. */
const CALENDAR = z.iso.datetime({ offset: true });

/** A time, which becomes epoch milliseconds. */
function time(description: string) {
  return z
    .string()
    .transform((text, context) => {
      const isReal = RFC3339.test(text) && CALENDAR.safeParse(text.toUpperCase()).success;
      const at = isReal ? Date.parse(text) : NaN;
      if (Number.isNaN(at)) {
        const message = 'must be a time such as 2026-05-01T12:00:00Z (in a URL, write + as %2B)';
        context.addIssue({ code: 'custom', message });
      }
      return at;
    })
    .optional()
    .meta({ description: `${description}, in RFC 3339: \`2026-05-01T00:00:00Z\`.`, format: 'date-time' });
}

/** The parameters of GET /documents. */
export const DOCUMENTS_QUERY = z.object({
  state: ISSUANCE_STATE.optional(),
  since: time('Created at this time or later'),
  until: time('Created before this time'),
  limit: PAGE_LIMIT,
  after: pagePosition(/^(\d{1,15})\.([0-9a-f]{64}|)$/, (position, tokenId = '') => ({
    position: Number(position),
    tokenId,
  })),
});

/** GET /documents */
export const LIST_DOCUMENTS: Operation = {
  id: 'listDocuments',
  tag: 'Documents',
  method: 'get',
  path: '/documents',
  summary: 'List what was issued',
  description:
    'The newest first, without the documents. With it you find a document whose answer was lost, if its ' +
    'request had no `Idempotency-Key`: by time, owner and holder, and then by the document itself. A page ' +
    'looks at 5,000 documents at most, so it may be short, or empty, although more follow.',
  access: 'issuer',
  query: DOCUMENTS_QUERY,
  answers: {
    200: {
      description: 'A page.',
      content: { mediaType: 'application/json', schema: z.array(ISSUANCE).meta({ id: 'Issuances' }) },
      headers: { Link: linkHeader('/documents', `28.${CREATED_TOKEN}`) },
    },
  },
};
