import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from './project-root';

const CONTEXT = 'application/ld+json';

/**
 * The files under `/contexts/`, with their media types. A file that was ever listed here must never change:
 * credentials signed under it must keep their meaning (docs/specification.md 6.2). docs/contexts.md explains
 * how to add a version.
 */
export const PUBLISHED_FILES: Readonly<Record<string, string>> = {
  'bill-of-lading-v1.json': CONTEXT,
  'bill-of-lading-v1.schema.json': 'application/schema+json',
};

/** The context of newly issued Bills of Lading. */
export const BILL_OF_LADING_CONTEXT = 'bill-of-lading-v1.json';

/** The schema for strict validation of such a Bill of Lading's subject. */
export const BILL_OF_LADING_SCHEMA = 'bill-of-lading-v1.schema.json';

/** The Bill of Lading context that TrustVC publishes. It has the same terms, for issuers who prefer it. */
export const TRUSTVC_BILL_OF_LADING_CONTEXT_URL = 'https://trustvc.io/context/bill-of-lading.json';

/** The contexts of Bills of Lading that credentials may name, in words. */
export const KNOWN_CONTEXTS = `a URL that ends with /${Object.keys(PUBLISHED_FILES)
  .filter((fileName) => PUBLISHED_FILES[fileName] === CONTEXT)
  .join(' or /')}, or ${TRUSTVC_BILL_OF_LADING_CONTEXT_URL}`;

/**
 * The file in `contexts/` with the content of a URL: an issuer may publish a context at any host, and may
 * keep an earlier version. Undefined if the content is not known.
 */
export function contextFileAt(url: string): string | undefined {
  if (url === TRUSTVC_BILL_OF_LADING_CONTEXT_URL) return 'trustvc-bill-of-lading.json';
  if (!URL.canParse(url)) return undefined;
  const { href, origin, pathname } = new URL(url);
  const fileName = pathname.slice(pathname.lastIndexOf('/') + 1);
  // No credentials, query or fragment.
  const isPlain = href === origin + pathname;
  return isPlain && PUBLISHED_FILES[fileName] === CONTEXT ? fileName : undefined;
}

/** The path of a published file at the service. */
export function publishedPath(fileName: string): string {
  return `/contexts/${fileName}`;
}

/** The bytes of a file of `contexts/`. */
export function readContextFile(fileName: string): Buffer {
  return readFileSync(join(PROJECT_ROOT, 'contexts', fileName));
}
