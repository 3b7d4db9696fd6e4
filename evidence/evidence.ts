import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { systemTime, timeAt } from '../service/base/time';
import { messageOf } from '../service/base/errors';
import { printableUrl } from '../service/base/mask-secrets';
import {
  contextFileAt,
  readContextFile,
  TRUSTVC_BILL_OF_LADING_CONTEXT_URL,
} from '../service/base/published-files';
import { networkOfChain } from '../service/chain/networks';
import { blocksAt } from '../service/chain/read-chain';
import { connectNode } from '../service/chain/chain';
import { createFetching } from '../service/did/fetch-json';
import { resolveDidWeb } from '../service/did/resolve-did-web';
import type { JsonObject } from '../service/issuance/credential';
import { createDocumentLoader, type DocumentLoader } from '../service/issuance/document-loader';
import { reachRegistry, type ReachedRegistry } from '../service/registry/registry-contracts';
import type { TokenLocation } from '../service/token/token-location';
import { verifyCredential, type VerificationSources } from '../service/verification/verify-credential';
import { jsonOf } from './check-document';
import { checkEvidence, type EvidenceReport, type NodeAnswer } from './check-evidence';
import { collectEvidence, type CollectionOptions } from '../service/evidence/collect-evidence';
import {
  parseEvidenceFile,
  type EvidenceFile,
  type FetchedDocument,
} from '../service/evidence/evidence-file';

// Evidence of a token, as other programs of this project and other projects ask for it.

export type { EvidenceReport, GivenBlock } from './check-evidence';
export type { EvidenceFile } from '../service/evidence/evidence-file';
export type { Statement, Status } from './statements';
export { evidencePage } from './evidence-page';

/** The means of collecting evidence, beside the token. */
export interface EvidenceOptions extends CollectionOptions {
  /** The document of the token, base or derived. */
  credential?: JsonObject | undefined;
  /** Contexts that need not be fetched. By default those of this package. */
  knownContexts?: DocumentLoader;
}

/**
 * Collects evidence of a token from a node, or from several that must agree.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN; RequestError TOKEN_NOT_MINTED; the errors of the node.
 */
export async function collect(
  { chainId, registry, tokenId }: TokenLocation,
  { rpcUrls, ...options }: EvidenceOptions & { rpcUrls: readonly string[] },
): Promise<EvidenceFile> {
  const node = { network: networkOfChain(chainId), urls: rpcUrls };
  return reachRegistry(systemTime, node, registry, (reached) => collectFrom(reached, tokenId, options));
}

/** Collects evidence of a token of a registry that was reached. */
export async function collectFrom(
  reached: ReachedRegistry,
  tokenId: bigint,
  { credential, knownContexts = createDocumentLoader(NO_OWN_CONTEXT), ...options }: EvidenceOptions,
): Promise<EvidenceFile> {
  const file = await collectEvidence(reached, tokenId, options);
  if (credential === undefined) return file;
  const { time } = reached.client;
  const sources = { knownContexts, fetchJson: createFetching(time), clock: time };
  return { ...file, credential: await collectDocument(credential, sources) };
}

/**
 * Collects the contexts and the DID document that a credential's verification needs, by verifying it:
 * contexts import others, and only the libraries know which.
 *
 * @param sources where a verification would get them.
 */
async function collectDocument(
  credential: JsonObject,
  sources: Pick<VerificationSources, 'knownContexts' | 'fetchJson' | 'clock'>,
): Promise<EvidenceFile['credential']> {
  const documents = new Map<string, FetchedDocument>();
  const problems = new Set<string>();
  const keep = (
    kind: FetchedDocument['kind'],
    url: string,
    from: FetchedDocument['from'],
    text: string,
  ): void => {
    const at = timeAt(sources.clock.now());
    const sha256 = createHash('sha256').update(text).digest('hex');
    if (!documents.has(url)) documents.set(url, { kind, url, from, at, sha256, text });
  };
  const fetching =
    (kind: FetchedDocument['kind']): VerificationSources['fetchJson'] =>
    async (url) => {
      const fetched = await sources.fetchJson(url);
      if (fetched.kind === 'json') keep(kind, url.href, 'host', fetched.text);
      else problems.add(`${fetched.url} ${fetched.problem}`);
      return fetched;
    };
  try {
    await verifyCredential(credential, {
      async knownContexts(url) {
        const known = await sources.knownContexts(url);
        keep('context', url, 'software', JSON.stringify(known.document));
        return known;
      },
      fetchJson: fetching('context'),
      resolveDid: (did) => resolveDidWeb(did, fetching('DID document')),
      readToken: async () =>
        Promise.reject(new Error('its events and its state are collected by themselves')),
      clock: sources.clock,
    });
  } catch (thrown) {
    problems.add(messageOf(thrown));
  }
  return { credential, documents: [...documents.values()], problems: [...problems] };
}

/** A URL that the loader knows anyway. */
const NO_OWN_CONTEXT = TRUSTVC_BILL_OF_LADING_CONTEXT_URL;

/**
 * Checks evidence without a network or, with the URLs of nodes, asks these for nothing but the hashes of its
 * blocks.
 *
 * @param value the JSON of an evidence file.
 * @throws RequestError EVIDENCE_INVALID.
 */
export async function check(
  value: unknown,
  { rpcUrls = [] }: { rpcUrls?: readonly string[] } = {},
): Promise<{ file: EvidenceFile; report: EvidenceReport }> {
  const file = parseEvidenceFile(value);
  const answers = await Promise.all(rpcUrls.map((url) => askHashes(url, file)));
  return { file, report: await checkEvidence(file, contextsFor(file), answers) };
}

async function askHashes(url: string, { blocks }: EvidenceFile): Promise<NodeAnswer> {
  const client = connectNode(url, {}, systemTime, 'bulk');
  const node = printableUrl(url);
  const numbers = blocks.map(({ number }) => number);
  try {
    const found = await blocksAt(client, numbers);
    return { node, hashes: new Map(numbers.map((number, index) => [number, found[index]?.hash])) };
  } catch (thrown) {
    return { node, hashes: new Map(), problem: messageOf(thrown) };
  } finally {
    client.close();
  }
}

/**
 * The contexts of this package. An issuer publishes that of the Bill of Lading at its own host: it counts
 * as known if the file has the content that it has here.
 */
function contextsFor({ credential }: EvidenceFile): DocumentLoader {
  const own = credential?.documents.find(({ kind, url, text }) => {
    const name = kind === 'context' ? contextFileAt(url) : undefined;
    return (
      name !== undefined && isDeepStrictEqual(jsonOf(readContextFile(name).toString('utf8')), jsonOf(text))
    );
  });
  return createDocumentLoader(own?.url ?? NO_OWN_CONTEXT);
}
