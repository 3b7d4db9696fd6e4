import { codeOf, messageOf } from '../base/errors';
import type { DocumentLoader } from '../issuance/document-loader';
import type { FetchedJson } from '../did/fetch-json';
import type { ContextLoader } from './derive-credential';
import { isJsonObject } from '../issuance/credential';

/** More than any credential needs. Contexts can import others, so their authors decide how many there are. */
const MOST_FETCHED = 30;

/** Loads a credential's contexts during one verification, and records the results. */
export interface ContextSource {
  load: ContextLoader;
  /** Whether the context of a URL is known without fetching it. */
  isKnown(url: string): Promise<boolean>;
  /** The URLs that were fetched, in order. */
  fetched(): string[];
  /** The URL at which a context was found after redirects; the given URL unless it was fetched. */
  foundAt: (url: string) => string;
  /** The reasons why contexts could not be loaded, each with its URL. */
  problems(): string[];
}

/**
 * Loads known contexts, and any other over HTTPS, each once. Known contexts are never fetched, so their host
 * cannot change their meaning.
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
    if (!isJsonObject(answer.json) || !('@context' in answer.json))
      throw new Error(`The document at ${url} is not a JSON-LD context`);
    fetched.set(url, answer.url);
    // Without the tag that lets jsonld cache the document for longer than this verification.
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
