import { createRequire } from 'node:module';
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { createVerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import * as digitalBazaar from '@digitalbazaar/vc';
import { getDocumentLoader } from '@trustvc/w3c-context';
import type * as trustVc from '@trustvc/w3c-vc';
import type { JsonRpcProvider } from 'ethers';
import { systemTime } from '../../../service/base/time';
import { createFetching } from '../../../service/did/fetch-json';
import { resolveDidWeb } from '../../../service/did/resolve-did-web';
import type { SignedCredential } from '../../../service/issuance/sign';

/** One of the portal's answers. */
export interface Fragment {
  type: 'DOCUMENT_INTEGRITY' | 'DOCUMENT_STATUS' | 'ISSUER_IDENTITY';
  name: string;
  status: 'VALID' | 'INVALID' | 'ERROR' | 'SKIPPED';
}

/**
 * The parts of @trustvc/trustvc, the library of the TrustVC portal, that the tests use. Remarks are hex
 * without 0x.
 */
interface TrustVcLibrary {
  encrypt(this: void, text: string, key: string): string;
  decrypt(this: void, remark: string, key: string): string;
  getTokenId(document: object): string;
  verifyDocument(
    document: object,
    options: { rpcProviderUrl: string; documentLoader?: unknown },
  ): Promise<Fragment[]>;
  /** Addresses with their checksum, the time in milliseconds, the remark decrypted. */
  fetchEndorsementChain(
    this: void,
    registry: string,
    tokenId: string,
    provider: JsonRpcProvider,
    key: string,
  ): Promise<
    {
      type: string;
      transactionHash: string;
      blockNumber: number;
      owner: string;
      holder: string;
      timestamp: number;
      remark: string;
    }[]
  >;
}

/**
 * The package itself, without its types: these name sources of version 4 contracts that do not compile with
 * ethers 6.
 */
export const trustVcLibrary = createRequire(__filename)('@trustvc/trustvc') as TrustVcLibrary;

/** A document loader for TrustVC's packages; their types refer to their own copy of jsonld. */
type TheirLoader = Awaited<ReturnType<typeof getDocumentLoader>>;

/** A copy of a credential, with the type of TrustVC's packages. */
export function theirs(credential: unknown): Parameters<typeof trustVc.verifyCredential>[0] {
  return structuredClone(credential) as Parameters<typeof trustVc.verifyCredential>[0];
}

/**
 * The libraries load the context and the DID of a document over HTTPS; here both come from the service over
 * HTTP. Nothing else is replaced.
 */
export async function loaderOfTheirs(
  serviceUrl: string,
  { '@context': contexts, issuer }: SignedCredential,
): Promise<TheirLoader> {
  const contextUrl = contexts.at(-1) ?? '';
  const context: unknown = await (await fetch(`${serviceUrl}${new URL(contextUrl).pathname}`)).json();
  const resolution = await resolveDidWeb(issuer, createFetching(systemTime));
  if (resolution.kind !== 'resolved') throw new Error(resolution.problem);
  const { document } = resolution;
  const others = await getDocumentLoader({ [contextUrl]: context } as Record<string, never>);
  return (async (url: string) => {
    if (url.split('#')[0] !== issuer) return others(url);
    const method = document.verificationMethod?.find(({ id }) => id === url);
    const found =
      url === issuer
        ? document
        : method && { '@context': 'https://w3id.org/security/multikey/v1', ...method };
    if (found === undefined) throw new Error(`${url} is not in the DID document`);
    return { contextUrl: undefined, documentUrl: url, document: found };
  }) as TheirLoader;
}

/** The verdict of @digitalbazaar/vc, which verifies derived documents only, and leaves their status out. */
export const digitalBazaarVerifies = (document: object, documentLoader: TheirLoader) =>
  digitalBazaar.verifyCredential({
    credential: structuredClone(document),
    suite: new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() }),
    documentLoader,
    checkStatus: async () => ({ verified: true }),
  });
