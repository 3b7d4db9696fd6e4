import { sha256 } from 'ethers';
import { messageOf, orUndefined, ServiceError } from '../service/base/errors';
import { scanJson, sizeOf } from '../service/base/json';
import { jsonIn } from '../service/did/fetched-json';
import { resolveDidWeb } from '../service/did/resolve-did-web';
import { tokenIdOf, type JsonObject } from '../service/issuance/credential';
import type { DocumentLoader, LoadedDocument } from '../service/issuance/document-loader';
import { tokenLocationOf } from '../service/token/token-location';
import type { Check } from '../service/verification/answer';
import { verifyCredential, type VerificationSources } from '../service/verification/verify-credential';
import type { EvidenceFile, FetchedDocument } from '../service/evidence/evidence-file';
import { createStatements, THE_FILE, type Statement, type Statements } from './statements';

/**
 * Checks the document with the contexts and the DID document in the file, as of the time at which they were
 * collected. A signature proves that the key signed. Whose key it was is what the issuer's domain said then.
 *
 * @param knownContexts the contexts that this program has: they count, whatever the file has instead.
 */
export async function checkDocument(file: EvidenceFile, knownContexts: DocumentLoader): Promise<Statement[]> {
  const statements = createStatements('document');
  if (file.credential === undefined) return [];
  const { credential, documents, problems } = file.credential;
  for (const document of documents) await checkFetched(document, knownContexts, statements);
  for (const problem of problems)
    statements.claimed(`A document could not be had: ${problem}.`, THE_FILE, { isMinor: true });
  checkToken(file, credential, statements);
  try {
    const sources = sourcesOf(file, documents, knownContexts);
    const { documentIntegrity, issuerIdentity, contextsFetched } = await verifyCredential(
      credential,
      sources,
    );
    for (const check of documentIntegrity.checks)
      sayOfIntegrity(check, { at: file.collectedAt, unknownContexts: contextsFetched }, statements);
    for (const check of issuerIdentity.checks) sayOfIssuer(check, file.collectedAt, statements);
  } catch (thrown) {
    // It is too large or too strange for this program, which says nothing about it.
    const problem = thrown instanceof ServiceError ? messageOf(thrown) : 'this program fails to read it';
    statements.claimed('The document is a signed credential.', `${problem}; ${THE_FILE}`);
  }
  return statements.made;
}

async function checkFetched(
  { kind, url, from, at, sha256: hash, text }: FetchedDocument,
  knownContexts: DocumentLoader,
  { proven, claimed, refuted }: Statements,
): Promise<void> {
  const says = `The ${kind} ${url} had the SHA-256 ${hash} at ${at}.`;
  if (sha256(new TextEncoder().encode(text)).slice(2) !== hash) {
    refuted(says, 'the text in the file has another one');
    return;
  }
  const known = kind === 'context' ? await contextOf(knownContexts, url) : undefined;
  const same = `The context ${url} in the file is the one that this program knows.`;
  const content = orUndefined(() => JSON.stringify(jsonOf(text)));
  if (known !== undefined && JSON.stringify(known.document) === content)
    proven(same, 'they have the same content');
  else if (known !== undefined) refuted(same, 'it has another content');
  else claimed(says, from === 'host' ? `its host gave it then; ${THE_FILE}` : THE_FILE, { isMinor: true });
}

/** The value of a JSON text; undefined for another text, and if an object has a name twice. */
export function jsonOf(text: string): unknown {
  const isClear = scanJson(Buffer.from(text)).repeated === undefined;
  return isClear ? orUndefined((): unknown => JSON.parse(text)) : undefined;
}

async function contextOf(knownContexts: DocumentLoader, url: string): Promise<LoadedDocument | undefined> {
  return knownContexts(url).catch(() => undefined);
}

/** The document must be the token's, and name its place. */
function checkToken(file: EvidenceFile, credential: JsonObject, { proven, refuted }: Statements): void {
  const { chainId, registry, tokenId } = file;
  const named = `The document names this token: ${tokenId} of registry ${registry} on chain ${chainId}.`;
  try {
    const location = tokenLocationOf(credential);
    const isSame =
      location.chainId === chainId &&
      location.registry.toLowerCase() === registry &&
      location.tokenId === BigInt(`0x${tokenId}`);
    if (isSame) proven(named, 'its credentialStatus has them');
    else refuted(named, 'its credentialStatus names another one');
  } catch (thrown) {
    refuted(named, messageOf(thrown));
  }
  const own = "The token is this document's: its id is the SHA-256 of the document's id.";
  if (typeof credential.id === 'string' && tokenIdOf(credential.id) === tokenId) proven(own, 'computed');
  else refuted(own, 'the id of the document has another hash, or is missing');
}

/** More than those of any context or DID document, and less than the libraries fail at. */
const MOST_VALUES = 20_000;

function sourcesOf(
  { collectedAt }: EvidenceFile,
  documents: readonly FetchedDocument[],
  knownContexts: DocumentLoader,
): VerificationSources {
  const fetchJson: VerificationSources['fetchJson'] = async ({ href }) => {
    const found = documents.find(({ url }) => url === href);
    if (found === undefined) return { kind: 'unavailable', url: href, problem: 'is not in the file' };
    const { url, text } = found;
    const read = jsonIn({ kind: 'bytes', url, contentType: '', bytes: Buffer.from(text) });
    if (read.kind !== 'json') return { ...read, problem: `${read.problem} in the file` };
    if (sizeOf(read.json).values <= MOST_VALUES) return read;
    return { kind: 'refused', url, problem: 'is larger in the file than this program reads' };
  };
  return {
    knownContexts,
    fetchJson,
    resolveDid: (did) => resolveDidWeb(did, fetchJson),
    readToken: async () => Promise.reject(new Error('the events and the state are checked by themselves')),
    clock: { now: () => Date.parse(collectedAt) },
  };
}

const INTEGRITY: Readonly<Record<string, (at: string) => string>> = {
  signature: () => 'The document is as it was signed with the key in the DID document of this file.',
  proof: (at) => `The document has a proof of a known kind that had not expired at ${at}.`,
  'meaning of the terms': () => 'Contexts that are known here give the terms of the document their meaning.',
  'covered by the signature': () => 'The signature covers all of the document.',
};

/**
 * A signature covers the meaning of labels, not the labels: a context that may be another may exchange
 * them.
 */
function sayOfIntegrity(
  { check, outcome, found }: Check,
  { at, unknownContexts }: { at: string; unknownContexts: readonly string[] },
  { proven, claimed, refuted }: Statements,
): void {
  const says = INTEGRITY[check]?.(at) ?? `The document: ${check}.`;
  const [unknown] = unknownContexts;
  if (outcome === 'valid' && unknown !== undefined)
    claimed(says, `${found}, with the context ${unknown} as the file has it; ${THE_FILE}`);
  else if (outcome === 'valid') proven(says, found);
  else if (outcome === 'invalid') refuted(says, found);
  else claimed(says, found);
}

function sayOfIssuer({ check, outcome, found }: Check, at: string, { claimed, refuted }: Statements): void {
  const says = `The issuer's ${check.replace(/^issuer$/, 'identifier')}: ${found}.`;
  if (outcome === 'invalid') refuted(says, `checked with the DID document in the file, as of ${at}`);
  else
    claimed(says, `the issuer's domain published it at ${at}; ${THE_FILE}`, { isMinor: outcome === 'valid' });
}

/** Deliveries are the sender's own record: nothing proves them. */
export function checkDeliveries({ deliveries }: EvidenceFile): Statement[] {
  const { made, claimed } = createStatements('deliveries');
  for (const { type, transactionHash, subscription, state, attempts } of deliveries?.deliveries ?? []) {
    const last = attempts.at(-1);
    const event = `The event ${type} of ${transactionHash}`;
    const says = `${event} was sent to the subscription ${subscription}: ${state}.`;
    const when = last ? `last at ${last.at}, answered ${last.status ?? 'not at all'}` : 'not sent yet';
    claimed(says, `the sender's own record says so: ${when}`, { isMinor: true });
  }
  return made;
}
