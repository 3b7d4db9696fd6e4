import { lookup } from 'node:dns';
import type { MessagePort } from 'node:worker_threads';
import { workerData } from 'node:worker_threads';
import { Agent, fetch } from 'undici';
import { systemClock } from '../base/clock';
import { codeOf, RequestError } from '../base/errors';
import { registryName } from '../base/registry-name';
import type { SinkRules } from '../base/sink-rules';
import { validateRequest } from '../validation/validate-request';
import { ForbiddenAddressError, guardedConnector } from '../delivery/guarded-connector';
import { fetchJson, type FetchedJson } from '../did/fetch-json';
import { resolveDidWeb } from '../did/resolve-did-web';
import type { JsonObject } from '../issuance/credential';
import { createDocumentLoader } from '../issuance/document-loader';
import { parseBody } from '../issuance/parse-body';
import {
  fromTransferredError,
  toTransferredError,
  type TransferredError,
} from '../issuance/transferred-error';
import { collectEvidence } from '../evidence/collect-evidence';
import type { TokenState } from '../registry/read-token-state';
import { reachRegistry, type NetworkNode } from '../registry/registry-contracts';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type { TokenLocation } from '../token/token-location';
import { createContextSource } from '../verification/contexts';
import { deriveCredential } from '../verification/derive-credential';
import { credentialIn } from '../verification/presented-credential';
import { verifyCredential } from '../verification/verify-credential';
import { parseDeriveRequest, parseVerifyRequest } from './credential-requests';
import type { VerifiedView } from './views';

/** The settings of a check. */
export interface CheckingSettings {
  /** URL of the own context of Bills of Lading. It is never fetched. */
  contextUrl: string;
  /** The addresses that may be asked: the maker of a credential chooses them. */
  rules: SinkRules;
}

/**
 * The work of a thread. A verification asks for the token's state at the port: what a stranger sent is not
 * read beside the URLs of nodes, which have keys. Evidence is read from nodes alone.
 */
export type CheckingTask =
  | { kind: 'evidence'; node: NetworkNode; location: TokenLocation }
  | { kind: 'validate'; bytes: Uint8Array }
  | { kind: 'derive'; bytes: Uint8Array }
  | { kind: 'verify'; bytes: Uint8Array; port: MessagePort };

/** The answer to a question for a token. */
export type TokenAnswer = { state: TokenState } | { error: TransferredError };

/** The result. Errors are converted, because they would lose their class between threads. */
export type CheckingOutcome = { result: unknown } | { error: TransferredError };

const CONNECT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 10_000;

const { contextUrl, rules } = workerData as CheckingSettings;

/** The thread runs this for each task. */
export default async function check(task: CheckingTask): Promise<CheckingOutcome> {
  try {
    if (task.kind === 'evidence') return { result: await evidenceBytes(task.node, task.location) };
    const body = parseBody(task.bytes);
    if (task.kind === 'validate') return { result: await validateRequest(body) };
    if (task.kind === 'derive') return { result: await derive(body) };
    return { result: await verify(body, task.port) };
  } catch (error) {
    return { error: toTransferredError(error) };
  }
}

/**
 * Bytes of encoded transactions and receipts, of which 1,300 plain transfers have half a megabyte. It bounds
 * the time, too: anybody can fill the blocks with events of a token.
 */
const MOST_EVIDENCE_BYTES = 64_000_000;

/** The evidence as JSON: writing a large file would hold up whoever sends it. */
async function evidenceBytes(node: NetworkNode, { registry, tokenId }: TokenLocation): Promise<Uint8Array> {
  const file = await reachRegistry(node, registry, (reached) =>
    collectEvidence(reached, tokenId, { mostBytes: MOST_EVIDENCE_BYTES }),
  );
  return new TextEncoder().encode(JSON.stringify(file));
}

async function verify(body: JsonObject, port: MessagePort): Promise<VerifiedView> {
  const credential = credentialIn(parseVerifyRequest(body));
  return withGuardedFetch(async (fetchGuarded, { lookedUp }) => {
    const { documentIntegrity, issuerIdentity, documentStatus, outcome, shown } = await verifyCredential(
      credential,
      {
        knownContexts: createDocumentLoader(contextUrl),
        fetchJson: fetchGuarded,
        resolveDid: (did) => resolveDidWeb(did, fetchGuarded),
        readToken: (location) => ask(port, location),
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
      lookedUp,
      shown: shown ?? null,
    };
  });
}

/** @throws RequestError CONTEXT_UNAVAILABLE (retryable), or the errors of deriveCredential. */
async function derive(body: JsonObject): Promise<{ verifiableCredential: JsonObject }> {
  const { verifiableCredential, options } = parseDeriveRequest(body);
  const credential = credentialIn(verifiableCredential);
  return withGuardedFetch(async (fetchGuarded, { unreached }) => {
    const contexts = createContextSource(createDocumentLoader(contextUrl), fetchGuarded);
    const { selectivePointers } = options;
    const derived = await deriveCredential(credential, selectivePointers, contexts.load).catch(
      (cause: unknown) => {
        if (codeOf(cause) !== 'DERIVATION_FAILED' || unreached.length === 0) throw cause;
        const problems = contexts.problems().join('; ');
        const message = `No version can be derived now: ${problems}. Try it again later.`;
        throw new RequestError('CONTEXT_UNAVAILABLE', message, { cause, retryable: true });
      },
    );
    return { verifiableCredential: derived };
  });
}

type FetchGuarded = (url: URL) => Promise<FetchedJson>;

/** URLs that were asked, and those that gave no answer now but may give one later. */
interface Asked {
  lookedUp: string[];
  unreached: string[];
}

/** The one who chose the address of a context is not the one who may allow it. */
const FORBIDDEN = 'this service does not connect to addresses of its kind';

/** Lends a fetch that connects to allowed addresses only. */
async function withGuardedFetch<T>(
  use: (fetchGuarded: FetchGuarded, asked: Asked) => Promise<T>,
): Promise<T> {
  const lookedUp: string[] = [];
  const unreached: string[] = [];
  const agents = new Map(
    ['https:', 'http:'].map((protocol) => {
      const connect = guardedConnector({ rules, lookup }, protocol, CONNECT_WITHIN_MS);
      return [protocol, new Agent({ connect })];
    }),
  );
  const fetchGuarded: FetchGuarded = async (asked) => {
    let isForbidden = false;
    const answer = await fetchJson(asked, ANSWER_WITHIN_MS, (url, options) => {
      lookedUp.push(url.href);
      const dispatcher = agents.get(url.protocol);
      return fetch(url, { ...options, ...(dispatcher && { dispatcher }) }).catch((thrown: unknown) => {
        isForbidden = (thrown as Error).cause instanceof ForbiddenAddressError;
        throw isForbidden ? new Error(FORBIDDEN) : thrown;
      });
    });
    if (answer.kind === 'unavailable' && !isForbidden) unreached.push(answer.url);
    return answer;
  };
  try {
    return await use(fetchGuarded, { lookedUp, unreached });
  } finally {
    for (const agent of agents.values()) await agent.destroy();
  }
}

function ask(port: MessagePort, location: TokenLocation): Promise<TokenState> {
  return new Promise((resolve, reject) => {
    port.once('message', (answer: TokenAnswer) => {
      if ('state' in answer) resolve(answer.state);
      else reject(fromTransferredError(answer.error));
    });
    port.postMessage(location);
  });
}
