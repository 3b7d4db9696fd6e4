import type { DocumentType } from './document-types';

/** A credential that is signed, and what its mint needs. */
export interface PreparedDocument {
  /** The credential's `id`. */
  credentialId: string;
  /** `credentialStatus.tokenId`: 64 lower-case hexadecimal digits. */
  tokenId: string;
  /** With their checksums. */
  beneficiary: string;
  holder: string;
  /** As the mint carries it: 0x-prefixed hex, encrypted. */
  remark: string;
  /** The signed credential as JSON in UTF-8: made once, stored and answered as it is. */
  document: Uint8Array<ArrayBuffer>;
}

/** What a document is prepared from. The same preparation gives the same credential, but for its signature. */
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
 * From a request's body to a signed credential.
 *
 * @throws RequestError (BODY_NOT_JSON for what is no JSON object) and SigningError for what the caller sent.
 */
export type PrepareDocument = (preparation: Preparation) => Promise<PreparedDocument>;
