import * as z from 'zod';
import { orUndefined } from '../base/errors';
import type { FetchedJson } from './fetched-json';

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
  fetchDocument: (url: URL) => Promise<FetchedJson>,
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

/**
 * https://w3c-ccg.github.io/did-method-web/#read-resolve: a colon is a slash, `%3A` the colon before a port.
 */
const PREFIX = 'did:web:';

/**
 * The characters of a DID (https://www.w3.org/TR/did-core/#did-syntax). Look-alike letters of other scripts
 * would name another domain than the one that a person reads.
 */
const DID = /^[A-Za-z0-9._:%-]+$/;

/** Segments that would have another meaning in a URL: empty, a relative folder, a query, a user. */
const UNFIT = /^\.{0,2}$|[/?#\\@]/;

/**
 * The URL of a did:web's DID document, always with https. Undefined if the text is not a did:web identifier.
 */
export function didWebUrl(did: string): URL | undefined {
  if (!did.startsWith(PREFIX) || !DID.test(did)) return undefined;
  const parts = did.slice(PREFIX.length).split(':');
  const segments = parts.map((part) => orUndefined(() => decodeURIComponent(part)));
  if (segments.some((segment) => segment === undefined || UNFIT.test(segment))) return undefined;
  const [host = '', ...path] = segments;
  const folder = path.map((segment) => `/${encodeURIComponent(segment ?? '')}`).join('') || '/.well-known';
  const url = `https://${host}${folder}/did.json`;
  return URL.canParse(url) ? new URL(url) : undefined;
}
