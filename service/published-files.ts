import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from './project-root';

/**
 * What stands under `/contexts/` for everybody, by file name, with its media type. A file that was ever
 * listed here stays, byte for byte: what was signed under it must keep its meaning (the document, "Hosting
 * the custom context"). docs/contexts.md tells how a new version is added.
 */
export const PUBLISHED_FILES: Readonly<Record<string, string>> = {
  'bill-of-lading-v1.json': 'application/ld+json',
  'bill-of-lading-v1.schema.json': 'application/schema+json',
};

/** The context of Bills of Lading that are issued now. */
export const BILL_OF_LADING_CONTEXT = 'bill-of-lading-v1.json';

/** What strict validation wants of the subject of such a Bill of Lading. */
export const BILL_OF_LADING_SCHEMA = 'bill-of-lading-v1.schema.json';

/** The path of a published file at the service. */
export function publishedPath(fileName: string): string {
  return `/contexts/${fileName}`;
}

/** The bytes of a file of `contexts/`. */
export function readContextFile(fileName: string): Buffer {
  return readFileSync(join(PROJECT_ROOT, 'contexts', fileName));
}
