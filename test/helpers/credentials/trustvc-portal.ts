import { createRequire } from 'node:module';

/** The parts of @trustvc/trustvc, the library of the TrustVC portal, that the tests use. */
export interface TrustVcPortal {
  /** @param message hex without 0x. */
  decrypt(message: string, key: string): string;
  getTokenId(document: object): string;
  getChainId(document: object): string;
  getTokenRegistryAddress(document: object): string;
  verifyDocument(
    document: object,
    options: { rpcProviderUrl: string; documentLoader?: unknown },
  ): Promise<Fragment[]>;
}

/** One of the portal's answers. */
export interface Fragment {
  type: 'DOCUMENT_INTEGRITY' | 'DOCUMENT_STATUS' | 'ISSUER_IDENTITY';
  name: string;
  status: 'VALID' | 'INVALID' | 'ERROR' | 'SKIPPED';
  reason?: { message?: string };
}

/**
 * The package itself, without its types: these name sources of version 4 contracts that do not compile with
 * ethers 6.
 */
export const portal = createRequire(__filename)('@trustvc/trustvc') as TrustVcPortal;
