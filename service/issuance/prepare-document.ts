import type { DidKeyPair } from '../base/did-key-pair';
import { RequestError } from '../base/errors';
import { refusedMint } from '../registry/refused-mint';
import { parseCreateRequest } from './create-request';
import { buildCredential, type UnsignedCredential } from './credential';
import { credentialIdOf } from './credential-id';
import { createDocumentLoader } from './document-loader';
import { parseBody } from './parse-body';
import type { PrepareDocument } from './preparation';
import { encryptRemark } from './remarks';
import { createCredentialSigner } from './sign';
import { statementsLength } from './statements-length';
import { findUnprotectedContent } from './unprotected-content';

/** A body of 50 MB, the limit, whose ids are no longer than ids are has fewer. */
const MOST_CHARACTERS = 56_000_000;

const LONGEST_SIMULATED_REMARK = 1_000;

/** What all documents of an issuer have in common. Plain values, which can be handed to a thread. */
export interface PreparationSettings {
  keyPair: DidKeyPair;
  did: string;
  documentContextUrl: string;
  rendererUrl: string;
  currency: string;
  chainId: number;
  tokenRegistry: string;
}

/**
 * Makes the part of issuing that needs neither chain nor database, and all of the computing.
 *
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function createDocumentPreparer(settings: PreparationSettings): Promise<PrepareDocument> {
  const { keyPair, did: issuer, ...common } = settings;
  const sign = await createCredentialSigner(keyPair, createDocumentLoader(common.documentContextUrl));
  return async ({ documentType, body, uuid, issuedAt }) => {
    const { credentialSubject, owner, holder, remarks } = parseCreateRequest(parseBody(body));
    const created = new Date(issuedAt);
    const id = credentialIdOf(uuid);
    const credential = buildCredential({
      ...common,
      id,
      issuedAt: created,
      issuer,
      documentType,
      credentialSubject,
    });
    refuseUnprotected(credential);
    refuseEndless(credential);
    refuseEndlessRemark(remarks);
    const signed = await sign(credential, created);
    return {
      credentialId: id,
      tokenId: signed.credentialStatus.tokenId,
      beneficiary: owner,
      holder,
      remark: encryptRemark(remarks, id),
      document: new TextEncoder().encode(JSON.stringify(signed)),
    };
  };
}

/**
 * The parts that are not the caller's hold nothing of the kind, so that the pointer is one into the request
 * body.
 */
function refuseUnprotected(credential: UnsignedCredential): void {
  const found = findUnprotectedContent(credential);
  if (found) throw new RequestError(found.code, `${found.pointer} ${found.problem}.`);
}

/** As the contract does, which takes 120 bytes: a node takes half a minute to look at megabytes. */
function refuseEndlessRemark(remarks = ''): void {
  if (remarks.length > LONGEST_SIMULATED_REMARK) throw refusedMint('RemarkLengthExceeded');
}

function refuseEndless({ credentialSubject }: UnsignedCredential): void {
  if (statementsLength(credentialSubject) <= MOST_CHARACTERS) return;
  const remedy = 'Shorten the ids, and attach bytes in base64.';
  const message = `/credentialSubject is too long when it is written as statements to be signed. ${remedy}`;
  throw new RequestError('BODY_TOO_COMPLEX', message, { remedy });
}
