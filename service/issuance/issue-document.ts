import type { Clock } from '../base/clock';
import { ConfigurationError, RequestError } from '../base/errors';
import type { Issuance } from '../journal/issuance';
import type { IdempotentRequest, Journal } from '../journal/journal';
import type { MintQueue } from '../minting/mint-queue';
import { awaitMint } from './await-mint';
import { Callers } from './callers';
import { findDocumentType, type DocumentType } from './document-types';
import { keptDocument, partsKept, type DocumentBytes } from './kept-document';
import type { PreparedDocument, PrepareForCallers } from './preparation';

/** What POST /create/{documentId} asks for. */
export interface IssueRequest {
  /** The body's bytes, which are given away. */
  body: Uint8Array<ArrayBuffer>;
  /** Undefined without an Idempotency-Key. */
  request: IdempotentRequest | undefined;
  /**
   * Called when the document is in the journal, and nothing large is held in memory for the request any more.
   */
  stored: () => void;
  /** Aborts when the caller leaves: what is not in the journal by then is given up, unless others wait. */
  left: AbortSignal;
}

/** A document whose token is mined. */
export interface IssuedDocument {
  credentialId: string;
  tokenId: string;
  /** Of the mint, 0x-prefixed. */
  txHash: string;
  document: DocumentBytes;
}

/** The use case: from a request body to a signed credential whose token is mined. */
export type IssueDocument = (request: IssueRequest) => Promise<IssuedDocument>;

/**
 * Steps 1 and 2 of docs/specification.md, section 2: gives what issues documents of the type that a path
 * names.
 *
 * @throws RequestError DOCUMENT_NOT_SUPPORTED; ConfigurationError NOT_CONFIGURED.
 */
export type AcceptDocument = (documentId: string) => IssueDocument;

/** What issuing needs: who signs, who mints, and where it is written down. */
export interface Issuer {
  prepare: PrepareForCallers;
  /** Rejects when the registry would refuse the mint. */
  simulate(mint: Pick<PreparedDocument, 'tokenId' | 'beneficiary' | 'holder' | 'remark'>): Promise<void>;
  journal: Pick<Journal, 'add' | 'findByKey' | 'documentLength' | 'documentOf'>;
  queue: Pick<MintQueue, 'mint'>;
  /** Milliseconds that a caller waits for the mint. */
  waitMs: number;
  /** Rejects when the node is of another chain than NET says, or does not answer. */
  checkChain(): Promise<void>;
}

/** What is being issued for a key. */
interface Running extends IdempotentRequest {
  callers: Callers;
  issued: Promise<IssuedDocument>;
}

/**
 * Makes the use case. Its steps are the numbered ones of POST /create.
 *
 * @param issuer what is needed, or the names of the settings that are missing: then no document is accepted.
 * @param newUuid a UUID version 7.
 */
export function createAcceptDocument(
  issuer: Issuer | { missing: string[] },
  clock: Clock,
  newUuid: () => string,
): AcceptDocument {
  const running = new Map<string, Running>();

  return (documentId) => {
    // 1. The type of document.
    const documentType = documentTypeOf(documentId);
    // 2. and 3. What must be configured, and the network.
    if ('missing' in issuer) throw notConfigured(issuer.missing);
    return async ({ body, request, stored, left }) => {
      const callers = new Callers(left);
      const preparation = { documentType, body, newUuid, clock, stored, callers };
      if (request === undefined) return issue(issuer, preparation, undefined);
      const { key } = request;
      const earlier = running.get(key);
      // What all have left is being given up: whoever comes then begins anew.
      if (earlier && !earlier.callers.allLeft.aborted) {
        requireSame(earlier, request);
        letGo(preparation);
        earlier.callers.join(left);
        return earlier.issued;
      }
      // Noted before anything is waited for: of two that come together the second waits for the first.
      const issued = issueOnce(issuer, preparation, request).finally(() => {
        if (running.get(key)?.callers === callers) running.delete(key);
      });
      running.set(key, { ...request, callers, issued });
      return issued;
    };
  };
}

/**
 * Larger documents are read from the journal again when they are answered: a chain that stands still lets
 * many wait for their mints.
 */
const HELD_BYTES = 64 * 1024;

/** What every request needs. */
interface Asked {
  stored: () => void;
  documentType: DocumentType;
  body: Uint8Array<ArrayBuffer>;
  newUuid: () => string;
  clock: Clock;
  callers: Callers;
}

async function issueOnce(issuer: Issuer, asked: Asked, request: IdempotentRequest): Promise<IssuedDocument> {
  const earlier = await issuer.journal.findByKey(request.key);
  return earlier ? outcomeOf(issuer, asked, earlier, request) : issue(issuer, asked, request);
}

async function issue(
  issuer: Issuer,
  asked: Asked,
  request: IdempotentRequest | undefined,
): Promise<IssuedDocument> {
  const { issuance, isEarlier, document } = await signAndStore(issuer, asked, request);
  if (isEarlier && request) return outcomeOf(issuer, asked, issuance, request);
  // From here on it will be minted, whatever becomes of this process and of the caller.
  asked.stored();
  // 9. and 10. The token.
  const txHash = await awaitMint(issuer.queue, issuance, issuer.waitMs);
  return { ...namesOf(issuance), txHash, document };
}

/** A document that is in the journal: this one, or the one that has its key already. */
interface Stored {
  issuance: Issuance;
  isEarlier: boolean;
  document: DocumentBytes;
}

/** A function of its own: nothing holds a large document in memory while its mint is waited for. */
async function signAndStore(
  { prepare, journal, ...issuer }: Issuer,
  { documentType, body, newUuid, clock, callers }: Asked,
  request: IdempotentRequest | undefined,
): Promise<Stored> {
  const issuedAt = clock.now();
  // 4. and 5. The credential, signed.
  const prepared = await prepare({ documentType, body, uuid: newUuid(), issuedAt }, callers.allLeft);
  // Not before: what is wrong with the request is said also while no node answers.
  await issuer.checkChain();
  callers.allLeft.throwIfAborted();
  const { document, ...mint } = prepared;
  // 6. to 8. What the registry would refuse is not begun.
  await issuer.simulate(mint);
  callers.keep();
  const earlier = await journal.add(prepared, request);
  const issuance: Issuance = earlier ?? {
    ...mint,
    state: 'signed',
    txHash: undefined,
    failure: undefined,
    requestHash: request?.requestHash,
    createdAt: issuedAt,
  };
  const { length } = document;
  const parts = length > HELD_BYTES ? partsKept(journal, mint.tokenId) : [document];
  return { issuance, isEarlier: earlier !== undefined, document: { length, parts } };
}

/** What the same request led to, or is leading to. */
async function outcomeOf(
  issuer: Issuer,
  asked: Asked,
  issuance: Issuance,
  request: IdempotentRequest,
): Promise<IssuedDocument> {
  requireSame(issuance, request);
  letGo(asked);
  const { queue, journal, waitMs } = issuer;
  const txHash = await awaitMint(queue, issuance, waitMs);
  const document = await keptDocument(journal, issuance.tokenId);
  return { ...namesOf(issuance), txHash, document };
}

/**
 * Who waits for what another request began needs no body: whatever holds the array, its memory is free from
 * here on, and so is its place among the large ones.
 */
function letGo({ body, stored }: Asked): void {
  if (body.byteLength > 0) structuredClone(body.buffer, { transfer: [body.buffer] });
  stored();
}

function namesOf({ credentialId, tokenId }: Issuance): Pick<IssuedDocument, 'credentialId' | 'tokenId'> {
  return { credentialId, tokenId };
}

/** Characters of what is sent as a type, which may be as long as headers are. */
const LONGEST_SHOWN = 100;

/** https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header, section 2.7. */
function requireSame(earlier: { requestHash: string | undefined }, { requestHash }: IdempotentRequest): void {
  if (earlier.requestHash === requestHash) return;
  const message = 'This Idempotency-Key was sent with another request before.';
  throw new RequestError('IDEMPOTENCY_KEY_REUSED', message, {
    remedy: 'Use a new key for each document, and the same bytes when a request is sent again.',
  });
}

function documentTypeOf(documentId: string): DocumentType {
  const documentType = findDocumentType(documentId);
  if (documentType) return documentType;
  const remedy = 'Supported: BILL_OF_LADING.';
  const message = `"${documentId.slice(0, LONGEST_SHOWN)}" is not supported. ${remedy}`;
  throw new RequestError('DOCUMENT_NOT_SUPPORTED', message, { remedy });
}

function notConfigured(missing: string[]): ConfigurationError {
  const message = `Documents cannot be issued: ${missing.join(', ')} not configured.`;
  const remedy = 'Set them, or run the setup commands: `npx hardhat deploy` and `npx tdoc setup`.';
  return new ConfigurationError('NOT_CONFIGURED', `${message} ${remedy}`, { remedy });
}
