import { otherFormsOf } from '../config/warnings';
import type { Time } from '../base/time';
import {
  ChainError,
  ConfigurationError,
  cut,
  RequestError,
  ServiceError,
  SignerError,
  UnavailableError,
} from '../base/errors';
import type { DocumentBytes, IdempotentRequest, Issuance } from '../journal/issuance';
import type { Journal } from '../journal/journal';
import type { RemoteSigner } from '../keys/signer-state';
import type { MintQueue } from '../minting/mint-queue';
import { type DocumentType, findDocumentType } from './credential';
import type { PreparedDocument, PrepareDocument, Preparation } from './prepare-document';
import { untilAborted, within } from '../base/waiting';

/** A request to POST /create/{documentId}. */
export interface IssueRequest {
  /** The body's bytes. Issuing takes them over; the caller must not use them afterwards. */
  body: Uint8Array<ArrayBuffer>;
  /** Undefined without an Idempotency-Key. */
  request: IdempotentRequest | undefined;
  /** Whether the caller waits for the mint: then the wallet's signer must be ready. */
  isMintAwaited: boolean;
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

/** A document that is in the journal, so that it will be minted even if this process ends. */
export interface KeptDocument {
  credentialId: string;
  tokenId: string;
  /** Resolves with the transaction hash of the mint. It need not be awaited, and goes on without callers. */
  mint: Promise<string>;
  /**
   * Waits for the mint, but not for ever.
   *
   * @throws ServiceError ISSUANCE_UNKNOWN when the document was removed meanwhile; ChainError
   *   MINT_STILL_WAITING (retryable) when it is not mined in time, or UnavailableError with the code of the
   *   wallet's signer if that fails then; the mint's own error.
   */
  minted(this: void): Promise<MintedDocument>;
}

/** A document whose token is mined. */
export interface MintedDocument {
  /** Transaction hash of the mint, 0x-prefixed. */
  txHash: string;
  document: DocumentBytes;
}

/** The parts that issuing needs: signing, minting and the journal. */
export interface Issuer {
  prepare: PrepareDocument;
  /** Rejects when the registry would refuse the mint. */
  simulate(mint: Pick<PreparedDocument, 'tokenId' | 'beneficiary' | 'holder' | 'remark'>): Promise<void>;
  journal: Pick<Journal, 'add' | 'findByKey' | 'documentOf'>;
  queue: Pick<MintQueue, 'mint'>;
  /** The remote signers. A key without one is in this process. */
  signers: Partial<Record<'wallet' | 'issuer', Pick<RemoteSigner, 'ready' | 'failure'> | undefined>>;
  time: Time;
  /** Rejects when the node belongs to another chain than NET, or does not answer. */
  checkChain(): Promise<void>;
}

/** The document being signed for an Idempotency-Key. */
interface Running extends IdempotentRequest {
  callers: Callers;
  kept: Promise<KeptDocument>;
}

/** A request, and everybody who waits for its document. */
interface Asked extends Pick<IssueRequest, 'request' | 'isMintAwaited' | 'stored'> {
  preparation: Preparation;
  callers: Callers;
}

/**
 * Creates the use case. The numbered steps are those of POST /create in docs/specification.md, section 2.
 *
 * @param issuer the parts, or the names of missing settings; with missing settings no document is accepted.
 * @param newUuid a UUID version 7.
 */
export function createAcceptDocument(
  issuer: Issuer | { missing: string[] },
  newUuid: () => string,
): AcceptDocument {
  const running = new Map<string, Running>();

  return (documentId) => {
    // 1. The type of document.
    const documentType = documentTypeOf(documentId);
    // 2. and 3. The configuration and the network.
    if ('missing' in issuer) throw notConfigured(issuer.missing);
    const issueAccepted: IssueDocument = async ({ body, request, isMintAwaited, stored, left }) => {
      const callers = new Callers(left);
      const preparation = { documentType, body, uuid: newUuid(), issuedAt: issuer.time.now() };
      const asked: Asked = { preparation, request, isMintAwaited, stored, callers };
      if (request === undefined) return issue(issuer, asked);
      const { key } = request;
      const earlier = running.get(key);
      // If all its callers have left, the earlier work is being given up, and this request starts anew.
      if (earlier && !earlier.callers.allLeft.aborted) {
        requireSame(earlier, request);
        letGo(asked);
        earlier.callers.join(left);
        return earlier.kept;
      }
      // Set before the first await: of two simultaneous requests, the second must wait for the first.
      const kept = issueOnce(issuer, asked, request).finally(() => {
        if (running.get(key)?.callers === callers) running.delete(key);
      });
      running.set(key, { ...request, callers, kept });
      return kept;
    };
    return { documentType, issue: issueAccepted };
  };
}

async function issueOnce(issuer: Issuer, asked: Asked, request: IdempotentRequest): Promise<KeptDocument> {
  const earlier = await issuer.journal.findByKey(request.key);
  return earlier ? outcomeOf(issuer, asked, earlier, request) : issue(issuer, asked);
}

/**
 * Larger documents are read from the journal again for the answer, because many may wait for their mints
 * while the chain stands still.
 */
const HELD_BYTES = 64 * 1024;

async function issue(issuer: Issuer, asked: Asked): Promise<KeptDocument> {
  const { preparation, request, callers } = asked;
  const prepared = await prepareMintable(issuer, asked).catch((error: unknown) => {
    throw error instanceof SignerError ? signerAway(error) : error;
  });
  const { document, ...mint } = prepared;
  callers.keep();
  const earlier = await issuer.journal.add(prepared, request);
  if (earlier && request) return outcomeOf(issuer, asked, earlier, request);
  // From now on the document will be minted, even if this process ends or the caller leaves.
  asked.stored();
  const issuance: Issuance = {
    ...mint,
    state: 'signed',
    txHash: undefined,
    failure: undefined,
    requestHash: request?.requestHash,
    createdAt: preparation.issuedAt,
  };
  const { length } = document;
  return keptDocument(issuer, issuance, length > HELD_BYTES ? undefined : { length, parts: [document] });
}

/** 4. to 8. Nothing is stored while a signer is away, so that the request may be sent again. */
async function prepareMintable(
  issuer: Issuer,
  { preparation, isMintAwaited, callers: { allLeft } }: Asked,
): Promise<PreparedDocument> {
  const { wallet, issuer: issuerSigner } = issuer.signers;
  // Its check runs beside the preparation.
  if (isMintAwaited) void wallet?.failure();
  await issuerSigner?.ready(allLeft);
  // 4. and 5. The credential, signed.
  const prepared = await issuer.prepare(preparation, allLeft);
  // Checked after the request itself, so that an invalid request is reported even while no node answers.
  await issuer.checkChain();
  allLeft.throwIfAborted();
  // 6. to 8. A mint that the registry would refuse is not started.
  await issuer.simulate(prepared);
  if (isMintAwaited) await wallet?.ready(allLeft);
  return prepared;
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

/** The longest time a caller waits for a mint. Most callers have given up by then. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** 9. and 10. Hands the document to the mint queue. */
export function keptDocument(
  {
    queue,
    journal,
    signers: { wallet },
    time,
  }: Pick<Issuer, 'queue' | 'signers' | 'time'> & { journal: Pick<Journal, 'documentOf'> },
  issuance: Issuance,
  held?: DocumentBytes,
): KeptDocument {
  const { credentialId, tokenId } = issuance;
  const mint = queue.mint(issuance);
  // Callers that wait get its error. The journal keeps it for the others.
  mint.catch(() => undefined);
  return {
    credentialId,
    tokenId,
    mint,
    async minted() {
      const txHash = await within(time, LONGEST_WAIT_MS, (late) =>
        untilAborted(late, mint).catch(async (cause: unknown) => {
          throw late.aborted ? stillWaiting(tokenId, cause, await wallet?.failure()) : cause;
        }),
      );
      const document = held ?? (await journal.documentOf(tokenId));
      if (document) return { txHash, document };
      throw new ServiceError('ISSUANCE_UNKNOWN', `The document of token ${tokenId} was removed meanwhile.`);
    },
  };
}

/**
 * Frees the body of a request that waits for another one's document, whoever holds the array, and its place
 * among the large requests.
 */
function letGo({ preparation: { body }, stored }: Asked): void {
  if (body.byteLength > 0) structuredClone(body.buffer, { transfer: [body.buffer] });
  stored();
}

/**
 * The callers that wait for the same document. Until it is kept, work on it stops when all of them have left.
 */
export class Callers {
  readonly #allLeft = new AbortController();
  #waiting = 0;
  #isKept = false;

  constructor(first: AbortSignal) {
    this.join(first);
  }

  /** Aborts when the last caller leaves before the document is kept, with that caller's reason. */
  get allLeft(): AbortSignal {
    return this.#allLeft.signal;
  }

  /** @param left aborts when the caller leaves. */
  join(left: AbortSignal): void {
    this.#waiting += 1;
    const leave = (): void => {
      this.#waiting -= 1;
      if (this.#waiting === 0 && !this.#isKept) this.#allLeft.abort(left.reason);
    };
    if (left.aborted) leave();
    else left.addEventListener('abort', leave, { once: true });
  }

  /**
   * From now on the work is finished even if all callers leave.
   *
   * @throws the last caller's reason when all have left.
   */
  keep(): void {
    this.allLeft.throwIfAborted();
    this.#isKept = true;
  }
}

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
  const message = `"${cut(documentId)}" is not supported. ${remedy}`;
  throw new RequestError('DOCUMENT_NOT_SUPPORTED', message, { remedy });
}

function notConfigured(missing: string[]): ConfigurationError {
  const message = `Documents cannot be issued: ${missing.join(', ')} not configured.`;
  const commands = 'Set them, or run the setup commands: `npx hardhat deploy` and `npx tdoc setup`.';
  const remedy = `${commands}${otherFormsOf(missing)}`;
  return new ConfigurationError('NOT_CONFIGURED', `${message} ${remedy}`, { remedy });
}

/** @param ofSigner the code of the wallet's signer, if it fails. */
function stillWaiting(tokenId: string, cause: unknown, ofSigner: string | undefined): ServiceError {
  const remedy =
    'The mint continues: ask for the document later, ' +
    'or send the request again with the same Idempotency-Key.';
  if (ofSigner !== undefined) {
    const message = `The document of token ${tokenId} is stored, and is minted when the signer is back.`;
    return new UnavailableError(ofSigner, `${message} ${remedy}`, { retryAfterMs: SIGNER_AWAY_MS, cause });
  }
  const message = `The mint of token ${tokenId} was not mined within ${LONGEST_WAIT_MS} ms.`;
  return new ChainError('MINT_STILL_WAITING', message, { cause, remedy, retryable: true });
}

/** A caller comes back after this time. */
const SIGNER_AWAY_MS = 10_000;

/** The signer's own message says where it is, which is not for callers. */
function signerAway(cause: SignerError): UnavailableError {
  const message = 'Nothing was stored: a signer of the service does not sign. Send the request again later.';
  return new UnavailableError(cause.code, message, { retryAfterMs: SIGNER_AWAY_MS, cause });
}
