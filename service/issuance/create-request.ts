import { ZeroAddress } from 'ethers';
import * as z from 'zod';
import { checksummed } from '../base/checksums';
import { found, isWellFormed, members, must, shaped } from '../base/json';
import { isJsonObject, type JsonObject } from './credential';
import { parseBody } from './parse-body';
import subjectTerms from './subject-terms.json';

/**
 * JSON Schemas of the terms of a Bill of Lading's subject, and of those that every credential's contexts
 * define for a subject.
 */
export const SUBJECT_TERMS: Readonly<Record<string, object>> = subjectTerms;

const REMEDY = 'Give the address of an account: 0x and 40 hexadecimal digits.';
const PATTERN = /^0x[0-9a-fA-F]{40}$/;

const subject = z
  .custom<JsonObject>(isJsonObject, {
    error: ({ input }) => `must be an object, ${found(input)}. Give the content to sign.`,
  })
  .meta({
    type: 'object',
    // Only strict validation, which authors may apply before, checks the types of terms.
    properties: SUBJECT_TERMS,
    additionalProperties: true,
    description:
      'The Bill of Lading. `type` must include `BillOfLading`, and every other name must be a term that ' +
      'is listed here; otherwise the subject cannot be signed. A text that contains `_:` is refused, ' +
      'and a list that has the same text twice. The types of the terms are recommended, not checked, ' +
      'and only `type` is required: `/contexts/bill-of-lading-v1.schema.json` has the rules for authors.',
  });

/** The address of an account, with its checksum. */
function account(role: string) {
  return z
    .string({ error: must('a string', REMEDY) })
    .regex(PATTERN, `is not an address. ${REMEDY}`)
    .transform(checksummed)
    .refine((address) => address !== undefined, {
      error: 'has a wrong checksum. Check for a typing error, or write the address in lower case.',
    })
    .refine((address) => address !== ZeroAddress, {
      error: `is the zero address, from which nobody could move the token. ${REMEDY}`,
    })
    .transform((address) => address ?? '')
    .meta({
      pattern: PATTERN.source,
      description: `The token's ${role}: an address, with its checksum or in one case; not the zero address.`,
    });
}

/** The body of POST /create/{documentId}. */
export const CREATE_REQUEST = members('the request', {
  credentialSubject: subject,
  owner: account('beneficiary'),
  holder: account('holder'),
  remarks: z
    .string({ error: must('a string', 'Give a text, or leave it out.') })
    .refine(isWellFormed, { error: 'contains half of a surrogate pair. Leave it out.' })
    .nullish()
    .transform((text) => text ?? undefined)
    .describe(
      'Recorded with the mint, encrypted under the id of the credential. At most 120 bytes in UTF-8.',
    ),
});

/** The checked body of POST /create/{documentId}. Addresses are checksummed. */
export type CreateRequest = z.output<typeof CREATE_REQUEST>;

/**
 * Parses the bytes of a request body and checks its shape. The strict rules for a Bill of Lading are not
 * applied: they are for the author of the credential.
 *
 * @throws RequestError: those of `parseBody`; REQUEST_FIELD_INVALID, with JSON pointer and remedy in the
 *   message.
 */
export function parseCreateRequest(body: Uint8Array): CreateRequest {
  return shaped(CREATE_REQUEST, parseBody(body), 'REQUEST_FIELD_INVALID');
}
