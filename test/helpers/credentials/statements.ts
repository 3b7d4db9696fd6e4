import * as jsonld from 'jsonld';
import type { SignedCredential } from '../../../service/issuance/sign';
import { createDocumentLoader } from '../../../service/issuance/document-loader';

/** A credential as JSON, signed or not, possibly changed. */
export type CredentialJson = Record<string, unknown>;

/** The credential without its proof. */
export function withoutProof(credential: CredentialJson | SignedCredential): CredentialJson {
  return Object.fromEntries(Object.entries(credential).filter(([key]) => key !== 'proof'));
}

/**
 * The statements of a credential as canonical N-Quads, from the JSON-LD library alone. Undefined if it is not
 * JSON-LD, or has content that is in no statement. `contextUrl` is the URL of the Bill of Lading context.
 */
export async function statementsOf(
  credential: CredentialJson,
  contextUrl: string,
): Promise<string[] | undefined> {
  try {
    const text = await jsonld.canonize(withoutProof(credential), {
      algorithm: 'RDFC-1.0',
      format: 'application/n-quads',
      documentLoader: createDocumentLoader(contextUrl),
      rdfDirection: 'i18n-datatype',
      base: null,
      safe: true,
    });
    return text.split('\n').slice(0, -1);
  } catch {
    return undefined;
  }
}

/**
 * Whether the whole has all statements of the part. Blank nodes are all equal here: text never has their
 * form, `_:c14n` and a number.
 */
export function isPartOf(part: string[], whole: string[]): boolean {
  const masked = (statement: string): string =>
    statement.replace(/^_:c14n\d+/, '_:').replace(/^(\S+ \S+ )_:c14n\d+ /, '$1_: ');
  const all = new Set(whole.map(masked));
  return part.every((statement) => all.has(masked(statement)));
}

/**
 * Normalises the forms of JSON that JSON-LD does not distinguish (docs/signature-coverage.md). Two documents
 * are equal afterwards exactly if they differ only in the forms that are listed there and may be signed.
 */
export function inOneForm(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(inOneForm).filter((item) => item !== undefined);
    const sorted = items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    return sorted.length > 1 ? sorted : sorted[0];
  }
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  const members = Object.entries(value)
    // As long as contexts are URLs, their meaning is in the statements.
    .filter(([key, member]) => key !== '@context' || !isListOfStrings(member))
    .map(([key, member]) => [key, withDatatype(key, inOneForm(member))] as const);
  const present = members.filter(([, member]) => member !== undefined);
  if (present.length === 1 && present[0]![0] === 'id') return present[0]![1];
  return Object.fromEntries(present.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The chain id is the only value with a datatype: as a number it means the same as a string. */
function withDatatype(key: string, value: unknown): unknown {
  return key === 'chainId' && typeof value === 'number' ? String(value) : value;
}

function isListOfStrings(value: unknown): boolean {
  return [value].flat().every((item) => typeof item === 'string');
}
