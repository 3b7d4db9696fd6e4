import { contexts as credentialsContexts } from '@digitalbazaar/credentials-context';
import { contexts as dataIntegrityContexts } from '@digitalbazaar/data-integrity-context';
import { constants as multikey, contexts as multikeyContexts } from '@digitalbazaar/multikey-context';
import { constants as did, contexts as didContexts } from 'did-context';
import { SigningError } from '../base/errors';
import { contextFileAt, readContextFile, TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../base/published-files';
import {
  CREDENTIALS_V2_CONTEXT_URL,
  DATA_INTEGRITY_V2_CONTEXT_URL,
  TRADETRUST_CONTEXT_URLS,
} from './credential';

/**
 * The result that jsonld expects of a document loader. `tag: 'static'` lets it share processed contexts
 * between documents.
 */
export interface LoadedDocument {
  contextUrl: null;
  document: unknown;
  documentUrl: string;
  tag?: 'static';
}

/** Returns the context of a URL without using the network. */
export type DocumentLoader = (url: string) => Promise<LoadedDocument>;

/**
 * Creates a loader that knows the base contexts from their packages, the TradeTrust contexts, and the Bill of
 * Lading context under `billOfLadingContextUrl` if its content is known. Any other URL is an error: the
 * meaning of a signature must not depend on the current answer of a host.
 */
export function createDocumentLoader(billOfLadingContextUrl: string): DocumentLoader {
  const known = new Map<string, LoadedDocument>();
  const add = (url: string, document: unknown): void => {
    known.set(url, { contextUrl: null, document, documentUrl: url, tag: 'static' });
  };
  add(CREDENTIALS_V2_CONTEXT_URL, credentialsContexts.get(CREDENTIALS_V2_CONTEXT_URL));
  add(DATA_INTEGRITY_V2_CONTEXT_URL, dataIntegrityContexts.get(DATA_INTEGRITY_V2_CONTEXT_URL));
  add(multikey.CONTEXT_URL, multikeyContexts.get(multikey.CONTEXT_URL));
  add(did.DID_CONTEXT_URL, didContexts.get(did.DID_CONTEXT_URL));
  const fileName = contextFileAt(billOfLadingContextUrl);
  if (fileName !== undefined) add(billOfLadingContextUrl, readContext(fileName));
  for (const url of TRADETRUST_CONTEXT_URLS) add(url, readContext(url.slice(url.lastIndexOf('/') + 1)));
  add(TRUSTVC_BILL_OF_LADING_CONTEXT_URL, readContext('trustvc-bill-of-lading.json'));

  return async (url) => {
    const document = known.get(url);
    if (document) return document;
    const remedy = `Known: ${[...known.keys()].join(', ')}`;
    throw new SigningError('CONTEXT_UNKNOWN', `Unknown context ${url}: contexts are never fetched.`, {
      remedy,
    });
  };
}

function readContext(fileName: string): unknown {
  return JSON.parse(new TextDecoder().decode(readContextFile(fileName)));
}
