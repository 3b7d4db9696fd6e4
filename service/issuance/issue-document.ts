import type { Clock } from '../base/clock';
import { ConfigurationError, RequestError } from '../base/errors';
import type { Issuance } from '../journal/issuance';
import type { DocumentBytes, IdempotentRequest, Journal } from '../journal/journal';
import type { MintQueue } from '../minting/mint-queue';
import { Callers } from './callers';
import { findDocumentType, type DocumentType } from './document-types';
import { keptDocument, type KeptDocument } from './kept-document';
import type { PreparedDocument, PrepareForCallers } from './preparation';

/** A request to POST /create/{documentId}. */
export interface IssueRequest {
  /** The body's bytes. Issuing takes them over; the caller must not use them afterwards. */
  body: Uint8Array<ArrayBuffer>;
  /** Undefined without an Idempotency-Key. */
  request: IdempotentRequest | undefined;
  /** Called when the document is in the journal and the request holds no large data in memory any more. */
  stored: () => void;
  /**
   * Aborts when the caller leaves. A document that is not in the journal by then is given up, unless other
   * callers wait for it.
   */
  left: AbortSignal;
}

/** Issues a document: from a request body to a signed credential in the journal, handed over for its mint. */
export type IssueDocument = (request: IssueRequest) => Promise<KeptDocument>;

/**
 * Steps 1 and 2 of docs/specification.md, section 2. Returns the type that the path names, and the function
 * that issues documents of it.
 *
 * @throws RequestError DOCUMENT_NOT_SUPPORTED; ConfigurationError NOT_CONFIGURED.
 */
export type AcceptDocument = (documentId: string) => AcceptedType;

/** A type of documents that are issued here. */
export interface AcceptedType {
  documentType: DocumentType;
  issue: IssueDocument;
}

/** The parts that issuing needs: signing, minting and the journal. */
export interface Issuer {
  prepare: PrepareForCallers;
  /** Rejects when the registry would refuse the mint. */
  simulate(mint: Pick<PreparedDocument, 'tokenId' | 'beneficiary' | 'holder' | 'remark'>): Promise<void>;
  journal: Pick<Journal, 'add' | 'findByKey' | 'documentOf'>;
  queue: Pick<MintQueue, 'mint'>;
  /** Milliseconds that a caller waits for the mint. */
  waitMs: number;
  /** Rejects when the node belongs to another chain than NET, or does not answer. */
  checkChain(): Promise<void>;
}

/** The document being signed for an Idempotency-Key. */
interface Running extends IdempotentRequest {
  callers: Callers;
  kept: Promise<KeptDocument>;
}

/**
 * Creates the use case. The numbered steps are those of POST /create in docs/specification.md, section 2.
 *
 * @param issuer the parts, or the names of missing settings; with missing settings no document is accepted.
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
    // 2. and 3. The configuration and the network.
    if ('missing' in issuer) throw notConfigured(issuer.missing);
    const issueAccepted: IssueDocument = async ({ body, request, stored, left }) => {
      const callers = new Callers(left);
      const preparation = { documentType, body, newUuid, clock, stored, callers };
      if (request === undefined) return issue(issuer, preparation, undefined);
      const { key } = request;
      const earlier = running.get(key);
      // If all its callers have left, the earlier work is being given up, and this request starts anew.
      if (earlier && !earlier.callers.allLeft.aborted) {
        requireSame(earlier, request);
        letGo(preparation);
        earlier.callers.join(left);
        return earlier.kept;
      }
      // Set before the first await: of two simultaneous requests, the second must wait for the first.
      const kept = issueOnce(issuer, preparation, request).finally(() => {
        if (running.get(key)?.callers === callers) running.delete(key);
      });
      running.set(key, { ...request, callers, kept });
      return kept;
    };
    return { documentType, issue: issueAccepted };
  };
}

/**
 * Larger documents are read from the journal again for the answer, because many may wait for their mints
 * while the chain stands still.
 */
const HELD_BYTES = 64 * 1024;

/** A request with the sources of ids and time. */
interface Asked {
  stored: () => void;
  documentType: DocumentType;
  body: Uint8Array<ArrayBuffer>;
  newUuid: () => string;
  clock: Clock;
  callers: Callers;
}

async function issueOnce(issuer: Issuer, asked: Asked, request: IdempotentRequest): Promise<KeptDocument> {
  const earlier = await issuer.journal.findByKey(request.key);
  return earlier ? outcomeOf(issuer, asked, earlier, request) : issue(issuer, asked, request);
}

async function issue(
  issuer: Issuer,
  asked: Asked,
  request: IdempotentRequest | undefined,
): Promise<KeptDocument> {
  const { issuance, isEarlier, held } = await signAndStore(issuer, asked, request);
  if (isEarlier && request) return outcomeOf(issuer, asked, issuance, request);
  // From now on the document will be minted, even if this process ends or the caller leaves.
  asked.stored();
  return keptDocument(issuer, issuance, held);
}

/** A document in the journal: this one, or an earlier one with the same key. */
interface Stored {
  issuance: Issuance;
  isEarlier: boolean;
  /** Undefined for a large document. */
  held: DocumentBytes | undefined;
}

/** A separate function, so that no large document stays in memory while its mint is awaited. */
async function signAndStore(
  { prepare, journal, ...issuer }: Issuer,
  { documentType, body, newUuid, clock, callers }: Asked,
  request: IdempotentRequest | undefined,
): Promise<Stored> {
  const issuedAt = clock.now();
  // 4. and 5. The credential, signed.
  const prepared = await prepare({ documentType, body, uuid: newUuid(), issuedAt }, callers.allLeft);
  // Checked after the request itself, so that an invalid request is reported even while no node answers.
  await issuer.checkChain();
  callers.allLeft.throwIfAborted();
  const { document, ...mint } = prepared;
  // 6. to 8. A mint that the registry would refuse is not started.
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
  const held = length > HELD_BYTES ? undefined : { length, parts: [document] };
  return { issuance, isEarlier: earlier !== undefined, held };
}

/** The result of an earlier request with the same key. */
function outcomeOf(
  issuer: Issuer,
  asked: Asked,
  issuance: Issuance,
  request: IdempotentRequest,
): KeptDocument {
  requireSame(issuance, request);
  letGo(asked);
  return keptDocument(issuer, issuance);
}

/**
 * Frees the body of a request that waits for another one's document, whoever holds the array, and its place
 * among the large requests.
 */
function letGo({ body, stored }: Asked): void {
  if (body.byteLength > 0) structuredClone(body.buffer, { transfer: [body.buffer] });
  stored();
}

/** Characters shown of an unknown document type, which may be as long as a path can be. */
const LONGEST_SHOWN = 100;

/** https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header, section 2.7. */
function requireSame(earlier: { requestHash: string | undefined }, { requestHash }: IdempotentRequest): void {
  if (earlier.requestHash === requestHash) return;
  const remedy = 'Use a new key for each document, and the same bytes when a request is sent again.';
  const message = `This Idempotency-Key was sent with another request before. ${remedy}`;
  throw new RequestError('IDEMPOTENCY_KEY_REUSED', message, { remedy });
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
