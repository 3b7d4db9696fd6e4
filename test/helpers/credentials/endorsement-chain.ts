import { createRequire } from 'node:module';
import type { JsonRpcProvider } from 'ethers';

/**
 * An entry of TrustVC's endorsement chain. Addresses with their checksum, the time in milliseconds, the
 * remark decrypted.
 */
export interface TrustVcEndorsement {
  type: string;
  transactionHash: string;
  transactionIndex: number;
  blockNumber: number;
  owner: string;
  holder: string;
  timestamp: number;
  remark: string;
}

/** The parts of @trustvc/trustvc that concern a token's life. Remarks are hex without 0x. */
export interface TrustVcChain {
  encrypt(this: void, text: string, key: string): string;
  decrypt(this: void, remark: string, key: string): string;
  fetchEndorsementChain(
    this: void,
    registry: string,
    tokenId: string,
    provider: JsonRpcProvider,
    key: string,
  ): Promise<TrustVcEndorsement[]>;
}

/**
 * The package itself, without its types: these name sources of version 4 contracts that do not compile with
 * ethers 6.
 */
export const trustVcChain = createRequire(__filename)('@trustvc/trustvc') as TrustVcChain;
