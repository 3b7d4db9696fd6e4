import { systemTime, newDeferred } from '../base/time';
import { reachDistantHosts } from '../base/distant-hosts';
import { codeOf, RequestError } from '../base/errors';
import { shaped } from '../base/json';
import { registryName } from '../base/registry-name';
import { piecesOf, send, serveTasks, resultOf } from '../base/worker-tasks';
import { validateRequest } from '../validation/validate-request';
import { collectEvidence } from '../evidence/collect-evidence';
import type { EvidenceFile } from '../evidence/evidence-file';
import { jsonIn } from '../did/fetched-json';
import { resolveDidWeb } from '../did/resolve-did-web';
import type { JsonObject } from '../issuance/credential';
import { createDocumentLoader } from '../issuance/document-loader';
import { MOST_CHECKED_VALUES, parseBody } from '../issuance/parse-body';
import { reachRegistry } from '../registry/registry-contracts';
import { tokenIdHexOf } from '../registry/token-id-forms';
import { createContextSource } from '../verification/contexts';
import { deriveCredential } from '../verification/derive-credential';
import { contextsOf, credentialIn } from '../verification/presented-credential';
import { verifyCredential, type VerificationSources } from '../verification/verify-credential';
import { DERIVE_REQUEST, VERIFY_REQUEST } from './credential-requests';
import type { CheckingPart, CheckingTask, Found, Wanted } from './checking-pool';
import type { VerifiedView } from './views';

reachDistantHosts();

serveTasks(check);
process.on('disconnect', () => process.exit());

/** A task, and all answers of others. */
type WholeTask = CheckingTask & { found: Found };

/** Sends the result in pieces. @returns the questions that have to be answered before. */
async function check(task: CheckingTask, parts: CheckingPart[]): Promise<Wanted | undefined> {
  const pieces = parts.filter((part) => part instanceof Uint8Array);
  const fetched: Found['fetched'] = new Map(
    parts.flatMap((part) => (part instanceof Uint8Array ? [] : [part])),
  );
  const found = { ...task.found, fetched };
  const body = task.source ? {} : parseBody(Buffer.concat(pieces), MOST_CHECKED_VALUES);
  const { others, wanting } = createOthers(found);
  const result = await Promise.race([CHECKS[task.kind](body, { ...task, found }, others), wanting]);
  if ('wanted' in result) return result.wanted;
  for (const part of piecesOf(Buffer.from(JSON.stringify(result)))) await send({ part });
  return undefined;
}

/** Those whom a check asks. */
type Others = Pick<VerificationSources, 'fetchJson' | 'readToken'>;

/**
 * Answers with what was found. The process does not ask others itself: it holds a permit, and the maker of a
 * credential chooses who is asked, and how long that takes. The check stands still at a question without an
 * answer, and begins anew when the service has asked.
 */
function createOthers({ fetched, token }: Found): { others: Others; wanting: Promise<{ wanted: Wanted }> } {
  const wanted: Wanted = { urls: [] };
  const { promise: wanting, resolve } = newDeferred<{ wanted: Wanted }>();
  const stand = (): Promise<never> => {
    // Then all that the check asks at once is known.
    setImmediate(() => resolve({ wanted }));
    return new Promise(() => undefined);
  };
  const others: Others = {
    async fetchJson({ href }) {
      const answer = fetched.get(href);
      if (answer) return jsonIn(answer);
      if (!wanted.urls.includes(href)) wanted.urls.push(href);
      return stand();
    },
    async readToken(location) {
      if (token) return resultOf(token);
      wanted.token = location;
      return stand();
    },
  };
  return { others, wanting };
}

type Check = (body: JsonObject, task: WholeTask, others: Others) => Promise<object>;

const CHECKS: Readonly<Record<CheckingTask['kind'], Check>> = {
  validate: validateRequest,
  verify,
  derive,
  evidence: (_, { source }) => evidenceOf(source),
};

/**
 * Bytes of encoded transactions and receipts, of which 1,300 plain transfers have half a megabyte. It bounds
 * the time, too: anybody can fill the blocks with events of a token.
 */
const MOST_EVIDENCE_BYTES = 64_000_000;

async function evidenceOf(source: CheckingTask['source']): Promise<EvidenceFile> {
  if (source === undefined) throw new Error('No node was named.');
  const { node, location } = source;
  return reachRegistry(systemTime, node, location.registry, (reached) =>
    collectEvidence(reached, location.tokenId, { mostBytes: MOST_EVIDENCE_BYTES }),
  );
}

async function verify(body: JsonObject, task: WholeTask, others: Others): Promise<VerifiedView> {
  const { verifiableCredential } = shaped(VERIFY_REQUEST, body, 'REQUEST_FIELD_INVALID');
  const credential = credentialIn(verifiableCredential);
  const knownContexts = createDocumentLoader(task.contextUrl);
  // A verification loads them later: here they are asked for together with the issuer and the token.
  const early = createContextSource(knownContexts, others.fetchJson);
  for (const { url = '' } of contextsOf(credential)) early.load(url).catch(() => undefined);
  const resolveDid = (did: string) => resolveDidWeb(did, others.fetchJson);
  const sources = { ...others, knownContexts, resolveDid, clock: systemTime };
  const { documentIntegrity, issuerIdentity, documentStatus, outcome, shown } = await verifyCredential(
    credential,
    sources,
  );
  const { checks, issuer = null } = issuerIdentity;
  const { token, ...status } = documentStatus;
  return {
    verified: outcome === 'valid',
    outcome,
    documentIntegrity,
    issuerIdentity: { outcome: issuerIdentity.outcome, checks, issuer },
    documentStatus: {
      ...status,
      tokenId: token ? tokenIdHexOf(token.tokenId) : null,
      registry: token ? registryName(token.chainId, token.registry) : null,
    },
    lookedUp: task.found.lookedUp,
    shown: shown ?? null,
  };
}

/** @throws RequestError CONTEXT_UNAVAILABLE (retryable), or the errors of deriveCredential. */
async function derive(
  body: JsonObject,
  { contextUrl, found }: WholeTask,
  others: Others,
): Promise<{ verifiableCredential: JsonObject }> {
  const { verifiableCredential, options } = shaped(DERIVE_REQUEST, body, 'REQUEST_FIELD_INVALID');
  const credential = credentialIn(verifiableCredential);
  const contexts = createContextSource(createDocumentLoader(contextUrl), others.fetchJson);
  const { selectivePointers } = options;
  const derived = await deriveCredential(credential, selectivePointers, contexts.load).catch(
    (cause: unknown) => {
      const mayComeLater = [...found.fetched.values()].some((one) => one.mayComeLater);
      if (codeOf(cause) !== 'DERIVATION_FAILED' || !mayComeLater) throw cause;
      const problems = contexts.problems().join('; ');
      const message = `No version can be derived now: ${problems}. Try it again later.`;
      throw new RequestError('CONTEXT_UNAVAILABLE', message, { cause, retryable: true });
    },
  );
  return { verifiableCredential: derived };
}
