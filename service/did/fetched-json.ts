import { messageOf } from '../base/errors';
import { parseJson, scanJson } from '../base/json';

/**
 * No document:
 *
 * - `refused`: the host's answer is not such a document; asking again gives the same answer.
 * - `unavailable`: no answer, or one that says nothing about the document.
 */
interface NotFetched {
  kind: 'refused' | 'unavailable';
  url: string;
  problem: string;
}

/** An answer that was not read yet. `url`: its URL after redirects. */
export type FetchedBytes =
  { kind: 'bytes'; url: string; contentType: string; bytes: Uint8Array } | NotFetched;

/** A document, and its text. */
export type FetchedJson =
  { kind: 'json'; url: string; contentType: string; text: string; json: unknown } | NotFetched;

/** Deeper than any context or DID document, and less than the libraries fail at. */
const DEEPEST = 100;

/** The document in an answer. A stranger chose the bytes: reading them may take as long as parsing 1 MB. */
export function jsonIn(fetched: FetchedBytes): FetchedJson {
  if (fetched.kind !== 'bytes') return fetched;
  const { url, contentType, bytes } = fetched;
  const refused = (problem: string): FetchedJson => ({ kind: 'refused', url, problem });
  const { repeated, depth } = scanJson(bytes, { mostDepth: DEEPEST });
  if (depth > DEEPEST) return refused(`is nested deeper than ${DEEPEST} levels`);
  try {
    const json = parseJson(bytes, (problem) => new Error(problem));
    if (repeated !== undefined) return refused(`has ${repeated} twice in its object`);
    // TextDecoder drops the byte order mark, like `response.json()`.
    return { kind: 'json', url, contentType, text: new TextDecoder().decode(bytes), json };
  } catch (thrown) {
    return refused(`is not JSON: ${messageOf(thrown)}`);
  }
}
