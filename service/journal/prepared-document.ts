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
