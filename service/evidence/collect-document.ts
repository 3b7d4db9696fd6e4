import { createHash } from 'node:crypto';
import { messageOf } from '../base/errors';
import { timeAt } from '../base/time';
import { resolveDidWeb } from '../did/resolve-did-web';
import type { JsonObject } from '../issuance/credential';
import { verifyCredential, type VerificationSources } from '../verification/verify-credential';
import type { EvidenceFile, FetchedDocument } from './evidence-file';

type Collected = NonNullable<EvidenceFile['credential']>;

/**
 * Collects the contexts and the DID document that a credential's verification needs, by verifying it:
 * contexts import others, and only the libraries know which.
 *
 * @param sources where a verification would get them.
 */
export async function collectDocument(
  credential: JsonObject,
  sources: Pick<VerificationSources, 'knownContexts' | 'fetchJson' | 'clock'>,
): Promise<Collected> {
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
