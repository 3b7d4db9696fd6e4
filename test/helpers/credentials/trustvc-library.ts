import { createRequire } from 'node:module';
import type { JsonRpcProvider } from 'ethers';

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
