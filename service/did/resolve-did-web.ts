import { z } from 'zod';
import { didWebUrl } from './did-web-url';
import { fetchJson, type FetchedJson } from './fetch-json';

/**
 * A published DID document (https://www.w3.org/TR/did-core/#core-properties). The fields that a verifier
 * needs are checked; the others are kept.
 */
export type PublishedDidDocument = z.infer<typeof didDocumentSchema>;

const verificationMethodSchema = z.looseObject({
  id: z.string(),
  type: z.string(),
  controller: z.string(),
  revoked: z.unknown().optional(),
  expires: z.unknown().optional(),
});
const didDocumentSchema = z.looseObject({
  id: z.string(),
  verificationMethod: listOf(verificationMethodSchema),
  assertionMethod: listOf(z.union([z.string(), verificationMethodSchema])),
  deactivated: z.unknown().optional(),
});

/**
 * Accepts a list or a single entry, and drops malformed entries: one unusable method must not prevent the use
 * of the others.
 */
function listOf<Entry>(schema: z.ZodType<Entry>): z.ZodType<Entry[] | undefined> {
  const wellFormed = (entry: unknown): Entry[] => {
    const parsed = schema.safeParse(entry);
    return parsed.success ? [parsed.data] : [];
  };
  return z
    .unknown()
    .optional()
    .transform((value) => (value === undefined ? undefined : [value].flat().flatMap(wellFormed)));
}

/**
 * The result of resolving a did:web:
 *
 * - `resolved`: the document of this DID, and its URL.
 * - `refused`: the domain does not publish a usable document.
 * - `unavailable`: the domain could not be reached.
 *
 * `problem` is a clause about the URL: "answers 404".
 */
export type DidResolution =
  | { kind: 'resolved'; url: string; contentType: string; document: PublishedDidDocument }
  | { kind: 'refused' | 'unavailable'; url: string; problem: string };

/**
 * Resolves a did:web identifier (https://w3c-ccg.github.io/did-method-web/#read-resolve) over HTTPS; plain
 * HTTP is used only for a host of this machine.
 */
export async function resolveDidWeb(
  did: string,
  fetchDocument: (url: URL) => Promise<FetchedJson> = fetchJson,
): Promise<DidResolution> {
  const url = didWebUrl(did);
  if (url === undefined) return { kind: 'refused', url: did, problem: 'is not a did:web identifier' };
  const fetched = await fetchDocument(url);
  if (fetched.kind !== 'json') return fetched;
  const parsed = didDocumentSchema.safeParse(fetched.json);
  const refused = (problem: string): DidResolution => ({ kind: 'refused', url: fetched.url, problem });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return refused(`is not a DID document: /${issue?.path.join('/') ?? ''} ${issue?.message ?? ''}`.trim());
  }
  if (parsed.data.id !== did) return refused(`is the DID document of ${parsed.data.id}, not of ${did}`);
  // `deactivated` belongs into a resolver's metadata (https://www.w3.org/TR/did-core/#did-document-metadata),
  // but is respected in the document too.
  if (parsed.data.deactivated === true) return refused('says that the DID is deactivated');
  return { kind: 'resolved', url: fetched.url, contentType: fetched.contentType, document: parsed.data };
}
