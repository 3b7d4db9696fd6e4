import type { SignedDocument } from '../journal/issuance';
import {
  buildCredential,
  type CredentialInput,
  credentialIdOf,
  type DocumentType,
  emptinessOf,
  type UnsignedCredential,
} from './credential';
import { cut, RequestError } from '../base/errors';
import type { IssuerKey } from '../config/key-settings';
import { refusedMint } from '../registry/refused-mint';
import { parseCreateRequest } from './create-request';
import { createDocumentLoader } from './document-loader';
import { encryptRemark } from './remarks';
import { createCredentialSigner, type SignCredential } from './sign';
import { unprotectedContentIn } from './unprotected-content';

/** The input of a document. The same input gives the same credential, except for its signature. */
export interface Preparation {
  documentType: DocumentType;
  /** The raw body of the request. The preparation takes it over, and it must not be used afterwards. */
  body: Uint8Array<ArrayBuffer>;
  /** UUID version 7. */
  uuid: string;
  /** Epoch milliseconds. */
  issuedAt: number;
}

/**
 * Turns a request's body into a signed credential.
 *
 * @throws RequestError (BODY_NOT_JSON if the body is not a JSON object) and SigningError for an invalid
 *   request; ChainError REMARK_TOO_LONG for a remark that is too long to be simulated; ConfigurationError
 *   when the key pair cannot be used.
 */
export type PrepareDocument = (preparation: Preparation) => Promise<SignedDocument>;

/** Characters of statements. A body at the limit of 50 MB with ids of usual length has fewer. */
const MOST_CHARACTERS = 56_000_000;

const LONGEST_SIMULATED_REMARK = 1_000;

/**
 * The values that all documents of an issuer share. They are plain, so that they can be passed to a thread.
 */
export interface PreparationSettings extends Omit<
  CredentialInput,
  'id' | 'issuedAt' | 'documentType' | 'credentialSubject'
> {
  issuerKey: IssuerKey;
}

/**
 * Creates the part of issuing that does all the computing and needs neither chain nor database. A thread asks
 * the service for the signatures of a key that is in a module. The signer opens while the first document is
 * prepared.
 */
export function createDocumentPreparer(settings: PreparationSettings): PrepareDocument {
  const signer = signerOf(settings);
  // Each document gets its error.
  signer.catch(() => undefined);
  return async ({ documentType, body, uuid, issuedAt }) => {
    const { credentialSubject, owner, holder, remarks } = parseCreateRequest(body);
    const created = new Date(issuedAt);
    const id = credentialIdOf(uuid);
    const credential = buildCredential({
      ...settings,
      id,
      issuedAt: created,
      documentType,
      credentialSubject,
    });
    refuseUnsignable(credential);
    // Fails like the contract, whose limit is 120 bytes: simulating megabytes takes a node half a minute.
    if ((remarks ?? '').length > LONGEST_SIMULATED_REMARK) throw refusedMint('RemarkLengthExceeded');
    const sign = await signer;
    const signed = await sign(credential, created);
    return {
      credentialId: id,
      tokenId: signed.credentialStatus.tokenId,
      owner,
      holder,
      remark: encryptRemark(remarks, id),
      blNumber: numberOf(credentialSubject),
      document: new TextEncoder().encode(JSON.stringify(signed)),
    };
  };
}

async function signerOf({ issuerKey, documentContextUrl }: PreparationSettings): Promise<SignCredential> {
  return createCredentialSigner(issuerKey, createDocumentLoader(documentContextUrl));
}

/** Characters of a number that lists show. */
const LONGEST_NUMBER = 100;

/** The beginning of the number of a Bill of Lading. PostgreSQL stores no NUL in a text. */
function numberOf({ blNumber }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof blNumber !== 'string') return undefined;
  // A surrogate pair that was cut leaves its first half.
  return blNumber
    .slice(0, LONGEST_NUMBER)
    .replaceAll('\0', '')
    .replace(/[\ud800-\udbff]$/, '');
}

/**
 * Refuses content that the signature would not protect, and a subject whose statements are none or too long.
 * The caller's parts are the only ones that may contain such content, so the pointer is valid in the request
 * body.
 */
function refuseUnsignable(credential: UnsignedCredential): void {
  const { done, value } = unprotectedContentIn(credential, 'credential').next();
  if (!done) throw new RequestError(value.code, `${cut(value.pointer)} ${value.problem}.`);
  const empty = emptinessOf(credential.credentialSubject);
  if (empty) throw new RequestError(empty.code, `/credentialSubject ${empty.problem}.`);
  if (value <= MOST_CHARACTERS) return;
  const remedy = 'Shorten the ids, and attach bytes in base64.';
  const message = `/credentialSubject is too long when it is written as statements to be signed. ${remedy}`;
  throw new RequestError('BODY_TOO_COMPLEX', message, { remedy });
}
