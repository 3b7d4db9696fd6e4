import type { Network } from '../chain/networks';
import type { TokenMinter } from '../chain/token-registry';
import type { Clock } from '../clock';
import { ConfigurationError, RequestError } from '../errors';
import { parseCreateRequest } from './create-request';
import { buildCredential, type UnsignedCredential } from './credential';
import { credentialIdOf } from './credential-id';
import { findDocumentType } from './document-types';
import { encryptRemark } from './remarks';
import type { SignCredential, SignedCredential } from './sign';
import { tokenIdAsUint256 } from './token-id';
import { findUnprotectedContent } from './unprotected-content';

/** The answer of POST /create/{documentId}. */
export interface IssuedDocument {
  signedW3CDocument: SignedCredential;
  /** Hash of the mint transaction, 0x-prefixed. */
  txHash: string;
}

/** The use case: from a request body to a signed credential whose token is mined. */
export type IssueDocument = (documentId: string, body: unknown) => Promise<IssuedDocument>;

/** What issuing needs: who signs, who mints, and where. */
export interface Issuer {
  did: string;
  network: Network;
  tokenRegistry: string;
  documentContextUrl: string;
  rendererUrl: string;
  sign: SignCredential;
  minter: TokenMinter;
  /** Rejects when the node is of another chain than NET says, or does not answer. */
  checkChain(): Promise<void>;
}

/**
 * Makes the use case. Its steps are the numbered ones of the document's POST /create.
 *
 * @param issuer what is needed, or the names of the settings that are missing: then every request fails, as the document says.
 * @param newUuid a UUID version 7.
 */
export function createIssueDocument(
  issuer: Issuer | { missing: string[] },
  clock: Clock,
  newUuid: () => string,
): IssueDocument {
  return async (documentId, body) => {
    // 1. The type of document.
    const documentType = findDocumentType(documentId);
    if (!documentType) {
      const remedy = 'Supported: BILL_OF_LADING.';
      throw new RequestError('DOCUMENT_NOT_SUPPORTED', `"${documentId}" is not supported. ${remedy}`, {
        remedy,
      });
    }
    // 2. and 3. What must be configured, and the network.
    if ('missing' in issuer) throw notConfigured(issuer.missing);
    const request = parseCreateRequest(body);
    await issuer.checkChain();
    // 4. and 5. The credential, signed.
    const issuedAt = new Date(clock.now());
    const credential = buildCredential({
      id: credentialIdOf(newUuid()),
      issuedAt,
      issuer: issuer.did,
      documentType,
      documentContextUrl: issuer.documentContextUrl,
      rendererUrl: issuer.rendererUrl,
      credentialSubject: request.credentialSubject,
      currency: issuer.network.currency,
      chainId: issuer.network.chainId,
      tokenRegistry: issuer.tokenRegistry,
    });
    refuseUnprotected(credential);
    const signedW3CDocument = await issuer.sign(credential, issuedAt);
    // 6. to 10. The token.
    const txHash = await issuer.minter.mint({
      beneficiary: request.owner,
      holder: request.holder,
      tokenId: tokenIdAsUint256(signedW3CDocument.credentialStatus.tokenId),
      remark: encryptRemark(request.remarks, signedW3CDocument.id),
    });
    return { signedW3CDocument, txHash };
  };
}

/** The parts that are not the caller's hold nothing of the kind, so that the pointer is one into the request body. */
function refuseUnprotected(credential: UnsignedCredential): void {
  const found = findUnprotectedContent(credential);
  if (found) throw new RequestError(found.code, `${found.pointer} ${found.problem}.`);
}

function notConfigured(missing: string[]): ConfigurationError {
  const message = `Documents cannot be issued: ${missing.join(', ')} not configured.`;
  const remedy = 'Set them, or run the setup commands: `npx hardhat deploy` and `npx hardhat did`.';
  return new ConfigurationError('NOT_CONFIGURED', `${message} ${remedy}`, { remedy });
}
