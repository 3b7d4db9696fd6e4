import type { JsonObject } from '../service/issuance/credential';
import full from '../test/fixtures/bill-of-lading-full.json';
import { attachmentOf, bodyWith } from '../test/helpers/credentials/preparations';

/** A document of a certain size. */
export interface GrowingDocument {
  name: string;
  packages: number;
  /** Millions of base64 characters, in one attachment. */
  megabytes: number;
}

/** From the smallest to the largest. */
export const GROWING_DOCUMENTS: readonly GrowingDocument[] = [
  ...[3, 30, 300].map((packages) => ({ name: `${packages} packages`, packages, megabytes: 0 })),
  ...[1, 5, 20, 40].map((megabytes) => ({ name: `3 packages, ${megabytes} MB`, packages: 3, megabytes })),
];

/** The fixture's Bill of Lading with this many packages. */
export function subjectOf(packages: number): JsonObject {
  const [first] = full.credentialSubject.packages;
  const list = Array.from({ length: packages }, (_, index) => ({ ...first, packagesWeight: `${index} KG` }));
  return { ...full.credentialSubject, packages: list };
}

/** The body of the request for it. */
export function requestBodyOf({ packages, megabytes }: GrowingDocument): string {
  const attachments = megabytes > 0 ? { attachments: [attachmentOf(megabytes)] } : {};
  return bodyWith({ ...subjectOf(packages), ...attachments });
}
