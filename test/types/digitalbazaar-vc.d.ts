// The part of @digitalbazaar/vc that the tests use; it comes without types.

declare module '@digitalbazaar/vc' {
  import type { DataIntegrityProof } from '@digitalbazaar/data-integrity';
  interface Options {
    suite: DataIntegrityProof;
    documentLoader: (url: string) => Promise<unknown>;
  }
  export interface Result {
    verified: boolean;
    statusResult?: { verified: boolean };
    error?: { errors?: Error[] } & Error;
  }
  export function derive<T>(options: Options & { verifiableCredential: object }): Promise<T>;
  export function verifyCredential(
    options: Options & {
      credential: object;
      checkStatus?: (options: { credential: object }) => Promise<{ verified: boolean }>;
      now?: Date;
    },
  ): Promise<Result>;
}
