import { systemTime } from '../base/time';
import { reachDistantHosts } from '../base/distant-hosts';
import { codeOf, RequestError } from '../base/errors';
import { registryName } from '../base/registry-name';
import { newDeferred } from '../base/waiting';
import { validateRequest } from '../validation/validate-request';
import { collectEvidence } from '../evidence/collect-evidence';
import type { EvidenceFile } from '../evidence/evidence-file';
import { jsonIn } from '../did/fetched-json';
import { resolveDidWeb } from '../did/resolve-did-web';
import type { JsonObject } from '../issuance/credential';
import { createDocumentLoader } from '../issuance/document-loader';
import { MOST_CHECKED_VALUES, parseBody } from '../issuance/parse-body';
import { fromTransferredError, toTransferredError } from '../issuance/transferred-error';
import { reachRegistry } from '../registry/registry-contracts';
import { tokenIdHexOf } from '../registry/token-id-forms';
import { createContextSource } from '../verification/contexts';
import { deriveCredential } from '../verification/derive-credential';
import { contextsOf, credentialIn } from '../verification/presented-credential';
import { verifyCredential, type VerificationSources } from '../verification/verify-credential';
import { parseDeriveRequest, parseVerifyRequest } from './credential-requests';
import {
  sendPieces,
  type CheckingOutcome,
  type CheckingTask,
  type Found,
  type ToProcess,
  type Wanted,
} from './checking-channel';
import type { VerifiedView } from './views';

reachDistantHosts();

let pieces: Uint8Array[] = [];
let fetched: Found['fetched'] = new Map();

process.on('message', (message: ToProcess) => {
  if (message instanceof Uint8Array) pieces.push(message);
  else if ('href' in message) fetched.set(message.href, message.answer);
  else {
    const task = { ...message.task, found: { ...message.found, fetched } };
    void check(task, Buffer.concat(pieces)).then((outcome) => process.send?.(outcome));
    pieces = [];
    fetched = new Map();
  }
});
process.on('disconnect', () => process.exit());

/** A task, and all answers of others. */
type WholeTask = CheckingTask & { found: Found };

async function check(task: WholeTask, bytes: Uint8Array): Promise<CheckingOutcome> {
  try {
    const body = task.source ? {} : parseBody(bytes, MOST_CHECKED_VALUES);
    const { others, wanting } = createOthers(task.found);
    const result = await Promise.race([CHECKS[task.kind](body, task, others), wanting]);
    if ('wanted' in result) return result;
    await sendPieces(process, Buffer.from(JSON.stringify(result)));
    return { isDone: true };
  } catch (error) {
    return { error: toTransferredError(error) };
  }
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
      if (token && 'state' in token) return token.state;
      if (token) throw fromTransferredError(token.error);
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
  const credential = credentialIn(parseVerifyRequest(body));
  const knownContexts = createDocumentLoader(task.contextUrl);
  // A verification loads them later: here they are asked for together with the issuer and the token.
  const early = createContextSource(knownContexts, others.fetchJson);
  for (const { url = '' } of contextsOf(credential)) early.load(url).catch(() => undefined);
  const { documentIntegrity, issuerIdentity, documentStatus, outcome, shown } = await verifyCredential(
    credential,
    {
      ...others,
      knownContexts,
      resolveDid: (did) => resolveDidWeb(did, others.fetchJson),
      clock: systemTime,
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
  const { verifiableCredential, options } = parseDeriveRequest(body);
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
