import { systemClock } from '../base/clock';
import { codeOf, RequestError } from '../base/errors';
import { registryName } from '../base/registry-name';
import { validateRequest } from '../validation/validate-request';
import type { FetchedJson } from '../did/fetch-json';
import { collectEvidence } from '../evidence/collect-evidence';
import type { EvidenceFile } from '../evidence/evidence-file';
import { resolveDidWeb } from '../did/resolve-did-web';
import type { JsonObject } from '../issuance/credential';
import { createDocumentLoader, type DocumentLoader } from '../issuance/document-loader';
import { MOST_CHECKED_VALUES, parseBody } from '../issuance/parse-body';
import {
  fromTransferredError,
  toTransferredError,
  type TransferredError,
} from '../issuance/transferred-error';
import type { TokenState } from '../registry/read-token-state';
import { reachRegistry, type NetworkNode } from '../registry/registry-contracts';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type { TokenLocation } from '../token/token-location';
import { checkIssuer } from '../verification/check-issuer';
import { checkStatus } from '../verification/check-status';
import { createContextSource } from '../verification/contexts';
import { deriveCredential } from '../verification/derive-credential';
import { contextsOf, credentialIn } from '../verification/presented-credential';
import { verifyCredential } from '../verification/verify-credential';
import { parseDeriveRequest, parseVerifyRequest } from './credential-requests';
import { sendPieces, type Message } from './pieces';
import type { VerifiedView } from './views';

/** The work of a process. Its bytes precede it, in pieces. */
export interface CheckingTask {
  kind: 'validate' | 'verify' | 'derive' | 'evidence';
  /** URL of the own context of Bills of Lading. It is never fetched. */
  contextUrl: string;
  /** The answers of others. Undefined: they were not asked. */
  found?: Found | undefined;
  /** Where evidence is read. What a stranger sent is never read beside the URLs of nodes, which have keys. */
  source?: { node: NetworkNode; location: TokenLocation };
}

/**
 * The answers of others that a check needs. The process does not ask: it holds a permit, and the maker of
 * a credential chooses who is asked, and how long that takes.
 */
export interface Wanted {
  /** URLs of contexts that are not known here. They may name others. */
  contexts: string[];
  /** URL of the issuer's DID document. */
  did?: string;
  token?: TokenLocation;
}

/** The answers of others to what was wanted. */
export interface Found {
  /** By their URLs. JSON is left out: it may be nested too deeply to be sent. */
  fetched: Map<string, Fetched>;
  token: TokenAnswer | undefined;
  /** Addresses that were asked. */
  lookedUp: string[];
}

/** The answer of a URL. `mayComeLater`: there is none now. */
export type Fetched = FetchedJson & { mayComeLater?: boolean };

/** The answer to a question for a token. */
export type TokenAnswer = { state: TokenState } | { error: TransferredError };

/**
 * The end of a task: its result was sent before, or others have to be asked. Errors are converted, because
 * they would lose their class between processes.
 */
export type CheckingOutcome = { isDone: true } | { wanted: Wanted } | { error: TransferredError };

const pieces: Uint8Array[] = [];

process.on('message', (message: Message<CheckingTask>) => {
  if (message instanceof Uint8Array) pieces.push(message);
  else void check(message, Buffer.concat(pieces.splice(0))).then((outcome) => process.send?.(outcome));
});
process.on('disconnect', () => process.exit());

async function check(task: CheckingTask, bytes: Uint8Array): Promise<CheckingOutcome> {
  try {
    const body = task.source ? {} : parseBody(bytes, MOST_CHECKED_VALUES);
    const result = await CHECKS[task.kind](body, task);
    if ('wanted' in result) return result as { wanted: Wanted };
    await sendPieces(process, Buffer.from(JSON.stringify(result)));
    return { isDone: true };
  } catch (error) {
    return { error: toTransferredError(error) };
  }
}

type Check = (body: JsonObject, task: CheckingTask) => Promise<object>;

const CHECKS: Readonly<Record<CheckingTask['kind'], Check>> = {
  validate: validateRequest,
  verify,
  derive,
  evidence: async (_, { source }) => evidenceOf(source),
};

/**
 * Bytes of encoded transactions and receipts, of which 1,300 plain transfers have half a megabyte. It bounds
 * the time, too: anybody can fill the blocks with events of a token.
 */
const MOST_EVIDENCE_BYTES = 64_000_000;

async function evidenceOf(source: CheckingTask['source']): Promise<EvidenceFile> {
  if (source === undefined) throw new Error('No node was named.');
  const { node, location } = source;
  return reachRegistry(node, location.registry, (reached) =>
    collectEvidence(reached, location.tokenId, { mostBytes: MOST_EVIDENCE_BYTES }),
  );
}

async function verify(
  body: JsonObject,
  { contextUrl, found }: CheckingTask,
): Promise<VerifiedView | { wanted: Wanted }> {
  const credential = credentialIn(parseVerifyRequest(body));
  const knownContexts = createDocumentLoader(contextUrl);
  if (found === undefined) return { wanted: await wantedToVerify(credential, knownContexts) };
  const fetchJson = async (url: URL): Promise<FetchedJson> => answerOf(found, url);
  const { documentIntegrity, issuerIdentity, documentStatus, outcome, shown } = await verifyCredential(
    credential,
    {
      knownContexts,
      fetchJson,
      resolveDid: (did) => resolveDidWeb(did, fetchJson),
      readToken: async () => {
        if (found.token === undefined) throw new Error('The token was not wanted.');
        if ('state' in found.token) return found.token.state;
        throw fromTransferredError(found.token.error);
      },
      clock: systemClock,
    },
  );
  const { token, ...status } = documentStatus;
  return {
    verified: outcome === 'valid',
    outcome,
    documentIntegrity,
    issuerIdentity: {
      outcome: issuerIdentity.outcome,
      checks: issuerIdentity.checks,
      issuer: issuerIdentity.issuer ?? null,
    },
    documentStatus: {
      ...status,
      tokenId: token ? tokenIdHexOf(token.tokenId) : null,
      registry: token ? registryName(token.chainId, token.registry) : null,
    },
    lookedUp: found.lookedUp,
    shown: shown ?? null,
  };
}

/** @throws RequestError CONTEXT_UNAVAILABLE (retryable), or the errors of deriveCredential. */
async function derive(
  body: JsonObject,
  { contextUrl, found }: CheckingTask,
): Promise<{ verifiableCredential: JsonObject } | { wanted: Wanted }> {
  const { verifiableCredential, options } = parseDeriveRequest(body);
  const credential = credentialIn(verifiableCredential);
  const knownContexts = createDocumentLoader(contextUrl);
  const unknown = found ? [] : await unknownContexts(credential, knownContexts);
  if (unknown.length > 0) return { wanted: { contexts: unknown } };
  let mayComeLater = false;
  const contexts = createContextSource(knownContexts, async (url) => {
    const answer = answerOf(found, url);
    mayComeLater ||= answer.mayComeLater ?? false;
    return answer;
  });
  const { selectivePointers } = options;
  const derived = await deriveCredential(credential, selectivePointers, contexts.load).catch(
    (cause: unknown) => {
      if (codeOf(cause) !== 'DERIVATION_FAILED' || !mayComeLater) throw cause;
      const problems = contexts.problems().join('; ');
      const message = `No version can be derived now: ${problems}. Try it again later.`;
      throw new RequestError('CONTEXT_UNAVAILABLE', message, { cause, retryable: true });
    },
  );
  return { verifiableCredential: derived };
}

/** The checks themselves say what they want: here, nobody answers them. */
async function wantedToVerify(credential: JsonObject, known: DocumentLoader): Promise<Wanted> {
  const wanted: Wanted = { contexts: await unknownContexts(credential, known) };
  const ask = async (url: URL): Promise<FetchedJson> => {
    wanted.did = url.href;
    return answerOf(undefined, url);
  };
  await checkIssuer(credential, undefined, (did) => resolveDidWeb(did, ask), 0);
  const readToken = async (location: TokenLocation): Promise<never> => {
    wanted.token = location;
    throw new Error('The token is read later.');
  };
  await checkStatus(credential, readToken, 0);
  return wanted;
}

async function unknownContexts(credential: JsonObject, known: DocumentLoader): Promise<string[]> {
  const urls: string[] = [];
  for (const { url } of contextsOf(credential))
    if (url !== undefined) await known(url).catch(() => urls.push(url));
  return urls;
}

/** A context that no other names in the expected way is not asked for: then the check could not tell. */
function answerOf(found: Found | undefined, { href: url }: URL): Fetched {
  const answer = found?.fetched.get(url) ?? { kind: 'unavailable', url, problem: 'was not asked' };
  return answer.kind === 'json' ? { ...answer, json: JSON.parse(answer.text) as unknown } : answer;
}
