import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from './project-root';

/** Media type of a context (JSON-LD 1.1, section C). */
export const CONTEXT_TYPE = 'application/ld+json';

/** Media type of a JSON Schema (draft 2020-12, section 14.1). */
export const SCHEMA_TYPE = 'application/schema+json';

const FOLDER = join(PROJECT_ROOT, 'contexts');
const PUBLISHED = /bill-of-lading-v\d+(\.schema)?\.json$/;

/**
 * The files under `/contexts/`, with their media types: ours, and those that an issuer put beside them. A
 * file that was ever published must never change: credentials signed under it must keep their meaning
 * (docs/specification.md 6.2). docs/contexts.md explains how to add one.
 */
export const PUBLISHED_FILES: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(FOLDER, { withFileTypes: true }).flatMap((entry) => {
    const { name } = entry;
    const [isPublished, isSchema] = PUBLISHED.exec(name) ?? [];
    // A container makes a folder of a file that is mounted and does not exist.
    return isPublished && !entry.isDirectory() ? [[name, isSchema ? SCHEMA_TYPE : CONTEXT_TYPE]] : [];
  }),
);

/** The context of newly issued Bills of Lading. */
export const BILL_OF_LADING_CONTEXT = 'bill-of-lading-v1.json';

/** The schema for strict validation of such a Bill of Lading's subject. */
export const BILL_OF_LADING_SCHEMA = 'bill-of-lading-v1.schema.json';

/** The Bill of Lading context that TrustVC publishes. It has the same terms, for issuers who prefer it. */
export const TRUSTVC_BILL_OF_LADING_CONTEXT_URL = 'https://trustvc.io/context/bill-of-lading.json';

/** The contexts among the published files. */
export const PUBLISHED_CONTEXTS = Object.keys(PUBLISHED_FILES).filter(
  (fileName) => PUBLISHED_FILES[fileName] === CONTEXT_TYPE,
);

const names = PUBLISHED_CONTEXTS.join(' or /');
/** The contexts of Bills of Lading that credentials may name, in words. */
export const KNOWN_CONTEXTS = `a URL that ends with /${names}, or ${TRUSTVC_BILL_OF_LADING_CONTEXT_URL}`;

/** The contexts of this release. Tests pin their bytes, and issue documents under them. */
const OF_THIS_RELEASE = [BILL_OF_LADING_CONTEXT, 'trustvc-bill-of-lading.json'];

/** Whether a context in `contexts/` is the issuer's own. */
export function isOwnContext(fileName: string): boolean {
  return !OF_THIS_RELEASE.includes(fileName);
}

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
  return isPlain && PUBLISHED_FILES[fileName] === CONTEXT_TYPE ? fileName : undefined;
}

/** The path of a published file at the service. */
export function publishedPath(fileName: string): string {
  return `/contexts/${fileName}`;
}

/** The bytes of a file of `contexts/`. */
export function readContextFile(fileName: string): Buffer {
  return readFileSync(join(FOLDER, fileName));
}
