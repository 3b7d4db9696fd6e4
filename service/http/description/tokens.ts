import * as z from 'zod';
import { DERIVE_REQUEST, VERIFY_REQUEST } from '../../answers/credential-requests';
import { component, EVIDENCE, KNOWN_TOKEN, TEXT, VERIFICATION } from '../../answers/views';
import { TOKEN_ID_PATH } from './documents';
import EXAMPLES from './examples.json';
import { chapter, json, OF_DATABASE, OF_REGISTRY } from './operation';

const CREDENTIAL = EXAMPLES.created.signedW3CDocument;

/** The registry that a token is sought in. */
const TOKEN_PLACE = z.object({
  registry: TEXT.optional().describe('The address of the registry.'),
  chainId: z
    .string()
    .regex(/^[1-9]\d{0,14}$/, { error: 'must be the number of a chain' })
    .transform(Number)
    .optional()
    .describe('The chain of `registry`; that of NET if absent.'),
});

/** Errors of reading a token from its chain. */
const READING_ERRORS = {
  400: ['TOKEN_ID_INVALID', 'NETWORK_NOT_CONFIGURED', ...OF_REGISTRY],
  404: ['TOKEN_UNKNOWN'],
  500: [
    'RPC_UNREACHABLE',
    'RPC_KEY_REFUSED',
    'NODE_FAILED',
    'CHAIN_ID_MISMATCH',
    ...OF_REGISTRY,
    'BLOCK_CHANGED',
    'TOKEN_HISTORY_INCOMPLETE',
    'TOKEN_OWNER_UNEXPECTED',
    ...OF_DATABASE,
  ],
  503: ['BUSY'],
} as const;

/** Questions for tokens. */
export const TOKENS = chapter('Tokens', 'any key', {
  getToken: {
    request: 'GET /tokens/{tokenId}',
    scope: 'read',
    summary: 'Show a token',
    pathParameters: TOKEN_ID_PATH,
    query: TOKEN_PLACE,
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
        KNOWN_TOKEN,
      ),
    },
    errors: READING_ERRORS,
  },
  getEvidence: {
    request: 'GET /tokens/{tokenId}/evidence',
    scope: 'read',
    summary: 'Collect the evidence of a token',
    pathParameters: TOKEN_ID_PATH,
    query: TOKEN_PLACE,
    answers: { 200: json('The evidence, a file to keep.', EVIDENCE) },
    errors: { ...READING_ERRORS, 422: ['EVIDENCE_TOO_LARGE'], 500: [...READING_ERRORS[500], 'CHECK_ENDED'] },
  },
});

/** Checks of credentials. */
export const CREDENTIALS = chapter('Credentials', 'any key', {
  verifyCredential: {
    request: 'POST /credentials/verify',
    summary: 'Verify a credential',
    isHarmless: true,
    body: {
      kind: 'document',
      schema: VERIFY_REQUEST.meta({ id: 'VerifyRequest' }),
      examples: { 'a credential': { verifiableCredential: CREDENTIAL } },
    },
    answers: { 200: json('The verdict.', VERIFICATION) },
    errors: { 400: ['REQUEST_FIELD_INVALID', 'CREDENTIAL_INVALID'], 500: ['CHECK_ENDED'], 503: ['BUSY'] },
  },
  deriveCredential: {
    request: 'POST /credentials/derive',
    summary: 'Derive the version of a credential that a holder shows',
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
        'CONTENT_CHANGED',
        'DERIVATION_FAILED',
      ],
      500: ['CHECK_ENDED'],
      503: ['BUSY', 'CONTEXT_UNAVAILABLE'],
    },
  },
});
