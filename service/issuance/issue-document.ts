import { otherFormsOf } from '../config/warnings';
import { type Time, untilAborted, within } from '../base/time';
import { addSpan } from '../base/trace';
import {
  ChainError,
  ConfigurationError,
  cut,
  RequestError,
  ServiceError,
  SignerError,
  UnavailableError,
  type ErrorCode,
} from '../base/errors';
import type { DocumentBytes, IdempotentRequest, Issuance, Origin, SignedDocument } from '../journal/issuance';
import type { Journal } from '../journal/journal';
import type { RemoteSigner } from '../keys/signer-state';
import type { MintQueue } from '../minting/mint-queue';
import type { DocumentType } from './credential';
import type { Preparation } from './prepare-document';

/** A request to POST /create/{documentId}. */
export interface IssueRequest {
  documentType: DocumentType;
  /** The body's bytes. Issuing takes them over; the caller must not use them afterwards. */
  body: Uint8Array<ArrayBuffer>;
  /** Undefined without an Idempotency-Key. */
  idempotent: IdempotentRequest | undefined;
  /** Whether the caller waits for the mint: then the wallet's signer must be ready. */
  isMintAwaited: boolean;
  /** Its place in a trace, as a `traceparent`, and when it came. Undefined: it is in none. */
  origin?: Pick<Origin, 'trace' | 'receivedAt'>;
  /** Called when the document is in the journal and the request holds no large data in memory any more. */
  stored: () => void;
  /**
   * Aborts when the caller leaves. A document that is not in the journal by then is given up, unless other
   * callers wait for it.
   */
  left: AbortSignal;
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
   * @returns `txHash`: the transaction hash of the mint, 0x-prefixed.
   * @throws ServiceError ISSUANCE_UNKNOWN when the document was removed meanwhile; ChainError
   *   MINT_STILL_WAITING (retryable) when it is not mined in time, or UnavailableError with the code of the
   *   wallet's signer if that fails then; the mint's own error.
   */
  minted(this: void): Promise<{ txHash: string; document: DocumentBytes }>;
}

/** Steps of POST /create: the first before the body is read, the other after it. */
export interface Issuing {
  /**
   * The type of documents that the path names, if they can be issued here.
   *
   * @throws RequestError DOCUMENT_NOT_SUPPORTED; ConfigurationError NOT_CONFIGURED.
   */
  acceptedType(documentId: string): DocumentType;
  /** From a request's body to a signed credential in the journal, handed over for its mint. */
  issue(request: IssueRequest): Promise<KeptDocument>;
}

/** The parts that issuing needs: signing, minting and the journal. */
export interface Issuer {
  /** Signs in a thread, which takes the body over. @throws BusyError, any error of `PrepareDocument`. */
  prepare(preparation: Preparation, left: AbortSignal): Promise<SignedDocument>;
  /** Rejects when the registry would refuse the mint. */
  simulate(mint: SignedDocument): Promise<void>;
  journal: Pick<Journal, 'add' | 'findByKey' | 'documentOf'>;
  queue: Pick<MintQueue, 'mint'>;
  /** The remote signers. A key without one is in this process. */
  signers: Partial<
    Record<'wallet' | 'issuer', Pick<RemoteSigner, 'ready' | 'failure' | 'follow'> | undefined>
  >;
  time: Time;
  /** Rejects when the node belongs to another chain than NET, or does not answer. */
  checkChain(): Promise<void>;
}

/**
 * Creates the use case. The numbered steps are those of POST /create in docs/specification.md, section 2.
 *
 * @param parts the issuer, or the names of missing settings; with these no document is accepted.
 * @param newUuid a UUID version 7.
 */
export function createIssuing(parts: Issuer | { missing: string[] }, newUuid: () => string): Issuing {
  /** The documents being signed, by their Idempotency-Keys. */
  const running = new Map<string, IdempotentRequest & { callers: Callers; kept: Promise<KeptDocument> }>();

  return {
    acceptedType(documentId) {
      // 1. The type of document, in any case.
      if (documentId.toUpperCase() !== 'BILL_OF_LADING') throw notSupported(documentId);
      // 2. and 3. The configuration and the network.
      if ('missing' in parts) throw notConfigured(parts.missing);
      return 'BILL_OF_LADING';
    },
    async issue(request) {
      const { documentType, body, idempotent, left } = request;
      if ('missing' in parts) throw notConfigured(parts.missing);
      const callers = new Callers(left);
      const preparation = { documentType, body, uuid: newUuid(), issuedAt: parts.time.now() };
      if (idempotent === undefined) return issueFor(parts, request, preparation, callers);
      const { key } = idempotent;
      const earlier = running.get(key);
      // If all its callers have left, the earlier work is being given up, and this request starts anew.
      if (earlier && !earlier.callers.allLeft.aborted) {
        giveWay(request, earlier);
        earlier.callers.join(left);
        return earlier.kept;
      }
      // Set before the first await: of two simultaneous requests, the second must wait for the first.
      const kept = parts.journal
        .findByKey(key)
        .then((stored) =>
          stored ? keptBefore(parts, request, stored) : issueFor(parts, request, preparation, callers),
        )
        .finally(() => {
          if (running.get(key)?.callers === callers) running.delete(key);
        });
      running.set(key, { ...idempotent, callers, kept });
      return kept;
    },
  };
}

/**
 * Larger documents are read from the journal again for the answer, because many may wait for their mints
 * while the chain stands still.
 */
const HELD_BYTES = 64 * 1024;

async function issueFor(
  issuer: Issuer,
  request: IssueRequest,
  preparation: Preparation,
  callers: Callers,
): Promise<KeptDocument> {
  const { idempotent, isMintAwaited, origin, stored } = request;
  const signing = signMintable(issuer, preparation, isMintAwaited, callers.allLeft);
  const { signed, ...times } = await signing.catch((error: unknown) => {
    throw error instanceof SignerError ? signerAway(error) : error;
  });
  callers.keep();
  addSpan('sign', origin?.trace, times.signingAt, times.signedAt);
  const issuance = await issuer.journal.add(signed, idempotent, origin && { ...origin, ...times });
  // Another document has the Idempotency-Key.
  if (issuance.tokenId !== signed.tokenId) return keptBefore(issuer, request, issuance);
  // From now on the document will be minted, even if this process ends or the caller leaves.
  stored();
  const { document } = signed;
  const { length } = document;
  return keptDocument(issuer, issuance, length > HELD_BYTES ? undefined : { length, parts: [document] });
}

/** 4. to 8. Nothing is stored while a signer is away, so that the request may be sent again. */
async function signMintable(
  issuer: Issuer,
  preparation: Preparation,
  isMintAwaited: boolean,
  allLeft: AbortSignal,
): Promise<{ signed: SignedDocument } & Pick<Origin, 'signingAt' | 'signedAt'>> {
  const { wallet, issuer: issuerSigner } = issuer.signers;
  const { time } = issuer;
  // Its check runs beside the preparation.
  if (isMintAwaited) void wallet?.failure();
  await issuerSigner?.ready(allLeft);
  // 4. and 5. The credential, signed.
  const signingAt = time.now();
  const signing = issuer.prepare(preparation, allLeft);
  const signed = await (issuerSigner?.follow(signing) ?? signing);
  const signedAt = time.now();
  // Checked after the request itself, so that an invalid request is reported even while no node answers.
  await issuer.checkChain();
  allLeft.throwIfAborted();
  // 6. to 8. A mint that the registry would refuse is not started.
  await issuer.simulate(signed);
  if (isMintAwaited) await wallet?.ready(allLeft);
  return { signed, signingAt, signedAt };
}

/** The result of an earlier request with the same key. */
function keptBefore(issuer: Issuer, request: IssueRequest, issuance: Issuance): KeptDocument {
  giveWay(request, issuance);
  return keptDocument(issuer, issuance);
}

/**
 * Frees the body of a request that gets another one's document, whoever holds the array, and its place among
 * the large requests.
 *
 * @throws RequestError IDEMPOTENCY_KEY_REUSED if that was another request
 *   (https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header, section 2.7).
 */
function giveWay({ body, idempotent, stored }: IssueRequest, earlier: Pick<Issuance, 'requestHash'>): void {
  if (earlier.requestHash !== idempotent?.requestHash) {
    const remedy = 'Use a new key for each document, and the same bytes when a request is sent again.';
    const message = `This Idempotency-Key was sent with another request before. ${remedy}`;
    throw new RequestError('IDEMPOTENCY_KEY_REUSED', message, { remedy });
  }
  if (body.byteLength > 0) structuredClone(body.buffer, { transfer: [body.buffer] });
  stored();
}

/** The longest time a caller waits for a mint. Most callers have given up by then. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** 9. and 10. Hands the document to the mint queue. */
export function keptDocument(
  issuer: Pick<Issuer, 'queue' | 'signers' | 'time'> & { journal: Pick<Journal, 'documentOf'> },
  issuance: Issuance,
  held?: DocumentBytes,
): KeptDocument {
  const { queue, journal, signers, time } = issuer;
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
          throw late.aborted ? stillWaiting(tokenId, cause, await signers.wallet?.failure()) : cause;
        }),
      );
      const document = held ?? (await journal.documentOf(tokenId));
      if (document) return { txHash, document };
      throw new ServiceError('ISSUANCE_UNKNOWN', `The document of token ${tokenId} was removed meanwhile.`);
    },
  };
}

/**
 * The callers that wait for the same document. Until it is kept, work on it stops when all of them have left.
 */
class Callers {
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

function notSupported(documentId: string): RequestError {
  const remedy = 'Supported: BILL_OF_LADING.';
  const message = `"${cut(documentId)}" is not supported. ${remedy}`;
  return new RequestError('DOCUMENT_NOT_SUPPORTED', message, { remedy });
}

function notConfigured(missing: string[]): ConfigurationError {
  const message = `Documents cannot be issued: ${missing.join(', ')} not configured.`;
  const commands = 'Set them, or run the setup commands: `npx hardhat deploy` and `npx tdoc setup`.';
  const remedy = `${commands}${otherFormsOf(missing)}`;
  return new ConfigurationError('NOT_CONFIGURED', `${message} ${remedy}`, { remedy });
}

/** @param ofSigner the code of the wallet's signer, if it fails. */
function stillWaiting(tokenId: string, cause: unknown, ofSigner: ErrorCode | undefined): ServiceError {
  const remedy =
    'The mint continues: ask for the document later, ' +
    'or send the request again with the same Idempotency-Key.';
  if (ofSigner !== undefined) {
    const message = `The document of token ${tokenId} is stored, and is minted when the signer is back.`;
    return new UnavailableError(ofSigner, `${message} ${remedy}`, { retryAfterMs: SIGNER_AWAY_MS, cause });
  }
  const message = `The mint of token ${tokenId} was not mined within ${LONGEST_WAIT_MS} ms.`;
  return new ChainError('MINT_STILL_WAITING', message, { cause, remedy });
}

/** A caller comes back after this time. */
const SIGNER_AWAY_MS = 10_000;

/** The signer's own message says where it is, which is not for callers. */
function signerAway(cause: SignerError): UnavailableError {
  const message = 'Nothing was stored: a signer of the service does not sign. Send the request again later.';
  return new UnavailableError(cause.code, message, { retryAfterMs: SIGNER_AWAY_MS, cause });
}
