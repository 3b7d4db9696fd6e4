import type { Time } from '../../service/base/time';
import { readSettings } from '../../service/config/config';
import { createFetching } from '../../service/did/fetch-json';
import { resolveDidWeb } from '../../service/did/resolve-did-web';
import { createDocumentLoader, type DocumentLoader } from '../../service/issuance/document-loader';
import { readTokenState } from '../../service/registry/read-token-state';
import { contextUrlOf } from '../../service/config/settings';
import type { VerificationSources } from '../../service/verification/verify-credential';
import { withRegistry } from '../token/find-token';

/** A URL that the loader knows anyway, used if the issuer has no context of its own configured. */
const NO_OWN_CONTEXT = 'https://trustvc.io/context/bill-of-lading.json';

/** The real sources: HTTPS, the networks' nodes, the system clock. */
export function verificationSources(time: Time): VerificationSources {
  const fetchJson = createFetching(time);
  return {
    knownContexts: knownContexts(),
    fetchJson,
    resolveDid: (did) => resolveDidWeb(did, fetchJson),
    readToken: (location) =>
      withRegistry(time, location, ({ client, registry }) =>
        readTokenState(client, registry.contracts, location.tokenId),
      ),
    clock: time,
  };
}

/** The contexts of the repository and its packages, and the configured issuer's own. */
export function knownContexts(): DocumentLoader {
  const { settings } = readSettings();
  return createDocumentLoader(contextUrlOf(settings) ?? NO_OWN_CONTEXT);
}
