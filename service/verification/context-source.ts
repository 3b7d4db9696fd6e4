import { codeOf, messageOf } from '../base/errors';
import type { DocumentLoader } from '../issuance/document-loader';
import type { FetchedJson } from '../did/fetch-json';
import type { ContextLoader } from './derive-credential';
import { isObject } from './presented-credential';

/** More than any credential needs. Contexts name further ones, and whoever wrote one decides how many. */
const MOST_FETCHED = 30;

/**
 * Where the contexts of a credential come from during one verification, and what became of asking for them.
 */
export interface ContextSource {
  load: ContextLoader;
  /** Whether a URL's context is known without asking. */
  isKnown(url: string): Promise<boolean>;
  /** The URLs that were fetched, in order. */
  fetched(): string[];
  /**
   * Where the context of a URL was found in the end, after redirects; the URL itself unless it was fetched.
   */
  foundAt: (url: string) => string;
  /** Why a context could not be had, each with its URL. */
  problems(): string[];
}

/**
 * Contexts that are known, and any other over HTTPS, each asked for once. What is known is never asked for:
 * nobody who answers for its host can give it another meaning.
 */
export function createContextSource(
  known: DocumentLoader,
  fetchJson: (url: URL) => Promise<FetchedJson>,
): ContextSource {
  const answers = new Map<string, Promise<object>>();
  const fetched = new Map<string, string>();
  const problems: string[] = [];

  async function fetchContext(url: string): Promise<object> {
    if (answers.size >= MOST_FETCHED)
      throw new Error(`More than ${MOST_FETCHED} contexts would have to be fetched`);
    if (!URL.canParse(url)) throw new Error(`The context "${url}" is not a URL`);
    const answer = await fetchJson(new URL(url));
    if (answer.kind !== 'json') throw new Error(`The context ${url} ${answer.problem}`);
    if (!isObject(answer.json) || !('@context' in answer.json))
      throw new Error(`What is at ${url} is no JSON-LD context`);
    fetched.set(url, answer.url);
    // Without the tag that would let jsonld keep it for longer than this verification.
    return { contextUrl: null, document: answer.json, documentUrl: url };
  }

  async function findKnown(url: string): Promise<object | undefined> {
    try {
      return await known(url);
    } catch (thrown) {
      if (codeOf(thrown) === 'CONTEXT_UNKNOWN') return undefined;
      throw thrown;
    }
  }

  async function load(url: string): Promise<object> {
    const context = await findKnown(url);
    if (context) return context;
    const answer = answers.get(url) ?? fetchContext(url);
    if (!answers.has(url)) {
      answers.set(url, answer);
      answer.catch((thrown: unknown) => problems.push(messageOf(thrown)));
    }
    return answer;
  }

  const isKnown = async (url: string): Promise<boolean> => (await findKnown(url)) !== undefined;
  return {
    load,
    isKnown,
    fetched: () => [...fetched.keys()],
    foundAt: (url) => fetched.get(url) ?? url,
    problems: () => [...problems],
  };
}
