import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { CreateAnswer } from './create-call';
import { derive, verify, type DidDocument } from '../credentials/derive-and-verify';
import { fetchDocument, type TextAnswer } from './documents-call';
import { eventually } from '../eventually';
import { mintedTokens } from '../chain/minted-tokens';
import type { LocalSetup } from '../chain/local-setup';

/** Statuses of a document whose token does not exist: unknown or failed. */
const WITHOUT_TOKEN = [404, 410];
const VERIFIED = 3;

/** The tokens to check: those minted since a block, and others that the service may know. */
export interface Issued {
  local: LocalSetup;
  serviceUrl: string;
  fromBlock: number;
  /** Ids of all tokens that the service ever tried to mint. */
  tried: Iterable<string>;
}

/**
 * Expects the guarantees of issuing, even after kills: every token on chain has its document, no document
 * names a token that does not exist, and every issuance ends.
 *
 * @returns the answers of the documents, by token id.
 */
export async function expectDocumentsKept(issued: Issued): Promise<Map<string, string>> {
  const { local, serviceUrl, fromBlock, tried } = issued;
  for (const tokenId of tried) await settled(serviceUrl, tokenId);
  const minted = await mintedTokens(local, fromBlock);
  const documents = new Map<string, string>();
  for (const tokenId of new Set([...tried, ...minted.keys()])) {
    const { status, text } = await settled(serviceUrl, tokenId);
    const txHash = minted.get(tokenId);
    if (txHash === undefined) {
      expect(WITHOUT_TOKEN, `${tokenId}, which is not on chain: ${text}`).to.include(status);
    } else {
      expect(status, `document of ${tokenId}, which is on chain: ${text}`).to.equal(200);
      expectToBeOf(local, text, tokenId, txHash);
      documents.set(tokenId, text);
    }
  }
  for (const text of [...documents.values()].slice(-VERIFIED)) await expectToVerify(local, text);
  return documents;
}

async function settled(serviceUrl: string, tokenId: string): Promise<TextAnswer> {
  return eventually(`${tokenId} is mined or failed`, async () => {
    const answer = await fetchDocument(serviceUrl, tokenId);
    return answer.status === 202 ? undefined : answer;
  });
}

/** Derives the token id here: it must follow from the document, not from the service's own value. */
function expectToBeOf(local: LocalSetup, text: string, tokenId: string, txHash: string): void {
  const answer = JSON.parse(text) as CreateAnswer['body'];
  const { id, credentialStatus } = answer.signedW3CDocument;
  expect(createHash('sha256').update(id, 'utf8').digest('hex'), `hash of ${id}`).to.equal(tokenId);
  expect(credentialStatus).to.deep.include({ tokenId, tokenRegistry: local.registryAddress });
  expect(answer.txHash, `mint of ${tokenId}`).to.equal(txHash);
}

async function expectToVerify(local: LocalSetup, text: string): Promise<void> {
  const { signedW3CDocument } = JSON.parse(text) as CreateAnswer['body'];
  const path = local.settings.DID_DOCUMENT_PATH ?? '';
  const didDocument = JSON.parse(readFileSync(path, 'utf8')) as DidDocument;
  const result = await verify(await derive(signedW3CDocument, ['/credentialSubject', '/id']), didDocument);
  expect(result.verified, `signature of ${signedW3CDocument.id}`).to.equal(true);
}
