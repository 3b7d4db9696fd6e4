import { z } from 'zod';
import { didWebUrl } from './did-web-url';
import { fetchJson } from './fetch-json';

/** A DID document as it is published (https://www.w3.org/TR/did-core/#core-properties): what a verifier needs of it is checked, the rest kept. */
export type PublishedDidDocument = z.infer<typeof didDocumentSchema>;

const verificationMethodSchema = z.looseObject({
  id: z.string(),
  type: z.string(),
  controller: z.string(),
  revoked: z.unknown().optional(),
  expires: z.unknown().optional(),
});
const relationSchema = z.array(z.union([z.string(), verificationMethodSchema])).optional();
const didDocumentSchema = z.looseObject({
  id: z.string(),
  verificationMethod: z.array(verificationMethodSchema).optional(),
  authentication: relationSchema,
  assertionMethod: relationSchema,
  capabilityInvocation: relationSchema,
  capabilityDelegation: relationSchema,
});

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
 * Resolves a did:web identifier (https://w3c-ccg.github.io/did-method-web/#read-resolve): over HTTPS, over plain HTTP only for a
 * host of this machine.
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
  return { kind: 'resolved', url: fetched.url, contentType: fetched.contentType, document: parsed.data };
}
