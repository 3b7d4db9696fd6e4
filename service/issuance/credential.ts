import { createHash } from 'node:crypto';

/** A JSON object as a caller sent it. */
export type JsonObject = Record<string, unknown>;

/** Whether the value is a JSON object; arrays and null are not. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Characters of a name: an id, a type, the URL of a context, a member. Libraries repeat names. */
export const LONGEST_NAME = 2_048;

/** Whether one of the names that a member has is too long. */
export function hasLongName(names: unknown): boolean {
  return [names].flat().some((name) => typeof name === 'string' && name.length > LONGEST_NAME);
}

/**
 * The problem of a subject without a claim (W3C Verifiable Credentials Data Model v2.0, section 4.8): JSON-LD
 * makes no statement of an id, of null or of an empty list. Other programs derive nothing from such a
 * credential.
 */
export function emptinessOf(subject: JsonObject): { code: 'SUBJECT_EMPTY'; problem: string } | undefined {
  const statesNothing = Object.entries(subject).every(
    ([name, value]) => name === 'id' || [value].flat().every((one) => one === null),
  );
  if (!statesNothing) return undefined;
  return { code: 'SUBJECT_EMPTY', problem: 'states nothing; give it a type and terms with values' };
}

/** A credential before it is signed. Its fields are in the order of the answer. */
export interface UnsignedCredential {
  '@context': string[];
  type: ['VerifiableCredential'];
  credentialStatus: {
    type: 'TransferableRecords';
    tokenNetwork: { chain: string; chainId: string };
    tokenRegistry: string;
    tokenId: string;
  };
  renderMethod: [{ id: string; type: 'EMBEDDED_RENDERER'; templateName: DocumentType }];
  credentialSubject: JsonObject;
  validFrom: string;
  validUntil: string;
  issuer: string;
  id: string;
}

/**
 * The input of a credential. The caller chooses `id` and `issuedAt`, so the same input gives the same
 * credential.
 */
export interface CredentialInput {
  id: string;
  issuedAt: Date;
  issuer: string;
  documentType: DocumentType;
  documentContextUrl: string;
  rendererUrl: string;
  credentialSubject: JsonObject;
  currency: string;
  chainId: number;
  tokenRegistry: string;
}

/** W3C Verifiable Credentials Data Model v2.0, section 4.3; Data Integrity 1.0, section 2.4. */
export const CREDENTIALS_V2_CONTEXT_URL = 'https://www.w3.org/ns/credentials/v2';
export const DATA_INTEGRITY_V2_CONTEXT_URL = 'https://w3id.org/security/data-integrity/v2';

/** Contexts of the TradeTrust vocabulary (see docs/architecture.md). */
export const TRADETRUST_CONTEXT_URLS = [
  'https://trustvc.io/context/transferable-records-context.json',
  'https://trustvc.io/context/render-method-context-v2.json',
  'https://trustvc.io/context/attachments-context.json',
];

/** Builds the credential of docs/specification.md, section 3. */
export function buildCredential(input: CredentialInput): UnsignedCredential {
  return {
    '@context': [
      CREDENTIALS_V2_CONTEXT_URL,
      DATA_INTEGRITY_V2_CONTEXT_URL,
      ...TRADETRUST_CONTEXT_URLS,
      input.documentContextUrl,
    ],
    type: ['VerifiableCredential'],
    credentialStatus: {
      type: 'TransferableRecords',
      tokenNetwork: { chain: input.currency, chainId: String(input.chainId) },
      tokenRegistry: input.tokenRegistry,
      tokenId: tokenIdOf(input.id),
    },
    renderMethod: [{ id: input.rendererUrl, type: 'EMBEDDED_RENDERER', templateName: input.documentType }],
    credentialSubject: input.credentialSubject,
    validFrom: input.issuedAt.toISOString(),
    validUntil: validUntilOf(input.issuedAt).toISOString(),
    issuer: input.issuer,
    id: input.id,
  };
}

/** A kind of transferable document: its identifier in the path and in `renderMethod.templateName`. */
export type DocumentType = 'BILL_OF_LADING';

/**
 * The `id` of a credential: `urn:uuid:` and a UUID version 7.
 *
 * Credentials of this kind have ids of the form `urn:bnid:_:<uuid>`. ecdsa-sd-2023 cannot sign such an id:
 * the cryptosuite marks blank nodes with the prefix `urn:bnid:` while it skolemises
 * (https://www.w3.org/TR/vc-di-ecdsa/#skolemizecompactjsonld), so the id is taken for the blank node
 * `_:_:<uuid>`. That is not a legal label, and the signature would not cover it anyway.
 * docs/decisions/0002-credential-id.md has the details.
 */
export function credentialIdOf(uuid: string): string {
  return `urn:uuid:${uuid}`;
}

/**
 * The token id of a credential: lower-case hex SHA-256 of the UTF-8 bytes of its `id`, 64 characters
 * (docs/specification.md 2.6).
 */
export function tokenIdOf(credentialId: string): string {
  return createHash('sha256').update(credentialId, 'utf8').digest('hex');
}

const MONTHS_VALID = 3;

/**
 * The end of a credential's validity: three calendar months after `from`, in UTC, at the same time of day. If
 * that month lacks the day, its last day is used (30 November → 28 or 29 February; docs/specification.md
 * 3.5).
 */
export function validUntilOf(from: Date): Date {
  const until = new Date(from);
  until.setUTCMonth(from.getUTCMonth() + MONTHS_VALID);
  // setUTCMonth carries a missing day over into the next month: day 0 of that month is the last day of the
  // wanted one.
  if (until.getUTCDate() !== from.getUTCDate()) until.setUTCDate(0);
  return until;
}
