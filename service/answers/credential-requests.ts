import * as z from 'zod';
import { members, must } from '../base/json';
import { isJsonObject, type JsonObject } from '../issuance/credential';

const CREDENTIAL = z
  .custom<JsonObject>(isJsonObject, { error: must('an object', 'Give a signed credential.') })
  .meta({
    type: 'object',
    additionalProperties: true,
    description:
      'A W3C Verifiable Credential with its proof, or a whole answer of `POST /create` or ' +
      '`POST /credentials/derive`.',
  });

/** The body of POST /credentials/verify, as in W3C's VC API. */
export const VERIFY_REQUEST = members('the request', {
  verifiableCredential: CREDENTIAL,
  options: z
    .custom<JsonObject>(isJsonObject, { error: must('an object', 'Give `{}`, or leave it out.') })
    .optional()
    .meta({
      type: 'object',
      additionalProperties: true,
      description: 'Options of the VC API. Every check is always made, so none of them changes anything.',
    }),
});

const POINTER = must('a string', 'Give JSON pointers, such as /credentialSubject/blNumber.');

/** The body of POST /credentials/derive, as in W3C's VC API. */
export const DERIVE_REQUEST = members('the request', {
  verifiableCredential: CREDENTIAL,
  options: members('the options', {
    selectivePointers: z
      .array(z.string({ error: POINTER }), { error: must('a list', 'Give JSON pointers.') })
      .describe(
        'JSON pointers (RFC 6901) of what the version discloses. An empty text discloses everything. ' +
          'What the issuer made mandatory is always disclosed.',
      ),
  }),
});
