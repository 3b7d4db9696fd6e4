import { z } from 'zod';
import { didWebUrl } from './did-web-url';
import { fetchJson } from './fetch-json';

/**
 * A DID document as it is published (https://www.w3.org/TR/did-core/#core-properties): what a verifier needs
 * of it is checked, the rest kept.
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
 * The well-formed entries, also of one that stands alone: a method that nobody could use is no reason to do
 * without the others.
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
 * What a did:web resolves to:
 *
 * - `resolved`: its document, which is about this DID, and where it was found.
 * - `refused`: the domain does not publish one that could be used.
 * - `unavailable`: the domain could not be asked.
 *
 * `problem` is a clause about the URL: "answers 404".
 */
export type DidResolution =
  | { kind: 'resolved'; url: string; contentType: string; document: PublishedDidDocument }
  | { kind: 'refused' | 'unavailable'; url: string; problem: string };

/**
 * Resolves a did:web identifier (https://w3c-ccg.github.io/did-method-web/#read-resolve): over HTTPS, over
 * plain HTTP only for a host of this machine.
 */
export async function resolveDidWeb(did: string): Promise<DidResolution> {
  const url = didWebUrl(did);
  if (url === undefined) return { kind: 'refused', url: did, problem: 'is not a did:web identifier' };
  const fetched = await fetchJson(url);
  if (fetched.kind !== 'json') return fetched;
  const parsed = didDocumentSchema.safeParse(fetched.json);
  const refused = (problem: string): DidResolution => ({ kind: 'refused', url: fetched.url, problem });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return refused(`is not a DID document: /${issue?.path.join('/') ?? ''} ${issue?.message ?? ''}`.trim());
  }
  if (parsed.data.id !== did) return refused(`is the DID document of ${parsed.data.id}, not of ${did}`);
  // Meant for a resolver's metadata (https://www.w3.org/TR/did-core/#did-document-metadata); whoever writes
  // it here means it.
  if (parsed.data.deactivated === true) return refused('says that the DID is deactivated');
  return { kind: 'resolved', url: fetched.url, contentType: fetched.contentType, document: parsed.data };
}
