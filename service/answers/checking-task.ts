import type { Outcome } from '../base/worker-tasks';
import type { FetchedBytes } from '../did/fetched-json';
import type { TokenState } from '../registry/read-token-state';
import type { NetworkNode } from '../registry/registry-contracts';
import type { TokenLocation } from '../token/token-location';

/** The work of a process. What a stranger sent is never read in a process that knows URLs of nodes. */
export interface CheckingTask {
  kind: 'validate' | 'verify' | 'derive' | 'evidence';
  /** URL of the own context of Bills of Lading. It is never fetched. */
  contextUrl: string;
  found: Omit<Found, 'fetched'>;
  /** Where evidence is read. */
  source?: { node: NetworkNode; location: TokenLocation };
}

/** `mayComeLater`: there is no answer now. */
export type HostAnswer = FetchedBytes & { mayComeLater: boolean };

/** Parts that come before a task: the bytes to check, in pieces, and the answers of hosts with their URLs. */
export type CheckingPart = Uint8Array | [url: string, answer: HostAnswer];

/** The answers of others, as far as they are known. */
export interface Found {
  /** By their URLs. */
  fetched: Map<string, HostAnswer>;
  token?: Outcome<TokenState>;
  /** Addresses that were asked. */
  lookedUp: string[];
}

/** The questions that a check cannot go on without. */
export interface Wanted {
  /** URLs of contexts and of a DID document. */
  urls: string[];
  token?: TokenLocation;
}
