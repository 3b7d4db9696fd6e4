import type { SignedDocument } from '../journal/issuance';
import type { DocumentType } from './document-types';

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
 * The result of a preparation: a signed credential and the values that its mint needs. The bytes are made
 * once, then stored and sent unchanged.
 */
export interface PreparedDocument extends SignedDocument {
  document: Uint8Array<ArrayBuffer>;
}

/**
 * Turns a request's body into a signed credential.
 *
 * @throws RequestError (BODY_NOT_JSON if the body is not a JSON object) and SigningError for an invalid
 *   request; ChainError REMARK_TOO_LONG for a remark that is too long to be simulated.
 */
export type PrepareDocument = (preparation: Preparation) => Promise<PreparedDocument>;

/**
 * PrepareDocument for callers that may leave.
 *
 * @param left aborts when nobody waits for the document any more.
 * @throws the reason of `left` when the document is given up because of it.
 */
export type PrepareForCallers = (preparation: Preparation, left?: AbortSignal) => Promise<PreparedDocument>;
