import { connectNode } from '../../../service/chain/chain';
import { NETWORKS } from '../../../service/chain/networks';
import { systemTime } from '../../../service/base/time';
import { createFetching } from '../../../service/did/fetch-json';
import { resolveDidWeb } from '../../../service/did/resolve-did-web';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import { readTokenState } from '../../../service/registry/read-token-state';
import type { VerificationSources } from '../../../service/verification/verify-credential';
import { createRegistryFinder } from '../../../service/registry/registry-contracts';
import type { LocalSetup } from '../chain/local-setup';

/**
 * The sources of the verify command, with the node of this setup instead of that of the settings. The
 * contexts of its issuer are fetched.
 */
export function realSources(local: LocalSetup, nodeUrl = local.node.url): VerificationSources {
  const fetched = createFetching(systemTime);
  return {
    knownContexts: createDocumentLoader('https://verifier.example/contexts/bill-of-lading-v1.json'),
    fetchJson: fetched,
    resolveDid: (did) => resolveDidWeb(did, fetched),
    clock: systemTime,
    async readToken({ chainId, registry, tokenId }) {
      const network = NETWORKS.find((known) => known.chainId === chainId);
      if (!network) throw new Error(`chain ${chainId}`);
      const client = connectNode(nodeUrl, {}, systemTime);
      try {
        const { contracts } = await createRegistryFinder(client, registry)();
        return await readTokenState(client, contracts, tokenId);
      } finally {
        client.close();
      }
    },
  };
}
