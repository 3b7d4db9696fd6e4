import type { SignedDocument } from '../journal/issuance';
import type { DocumentType } from './document-types';

/**
 * What a document is prepared from. The same preparation gives the same credential, but for its signature.
 */
export interface Preparation {
  documentType: DocumentType;
  /** The request's body as it came. It is given away: nobody else may use it afterwards. */
  body: Uint8Array<ArrayBuffer>;
  /** Version 7. */
  uuid: string;
  /** Epoch milliseconds. */
  issuedAt: number;
}

/**
 * What a preparation leads to: a signed credential, and what its mint needs. Its bytes are made once, stored
 * and answered as they are.
 */
export interface PreparedDocument extends SignedDocument {
  document: Uint8Array<ArrayBuffer>;
}

/**
 * From a request's body to a signed credential.
 *
 * @throws RequestError (BODY_NOT_JSON for what is no JSON object) and SigningError for what the caller sent;
 *   ChainError REMARK_TOO_LONG for a remark that is too long to be simulated.
 */
export type PrepareDocument = (preparation: Preparation) => Promise<PreparedDocument>;

/**
 * The same for callers who may leave.
 *
 * @param left aborts when nobody waits for the document any more.
 * @throws the reason of `left` when the document is given up for that.
 */
export type PrepareForCallers = (preparation: Preparation, left?: AbortSignal) => Promise<PreparedDocument>;
