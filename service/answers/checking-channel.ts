import type { FetchedJson } from '../did/fetch-json';
import type { TransferredError } from '../issuance/transferred-error';
import type { TokenState } from '../registry/read-token-state';
import type { NetworkNode } from '../registry/registry-contracts';
import type { TokenLocation } from '../token/token-location';

// The messages between the service and the processes that check. Bytes come in pieces, before the message
// that needs them.

/** The work of a process. What a stranger sent is never read in a process that knows URLs of nodes. */
export interface CheckingTask {
  kind: 'validate' | 'verify' | 'derive' | 'evidence';
  /** URL of the own context of Bills of Lading. It is never fetched. */
  contextUrl: string;
  found: Found;
  /** Where evidence is read. */
  source?: { node: NetworkNode; location: TokenLocation };
}

/** The answers of others, as far as they are known. */
export interface Found {
  /**
   * By their URLs. `mayComeLater`: there is no answer now. JSON is left out: it may be nested too deeply to
   * be sent.
   */
  fetched: Map<string, FetchedJson & { mayComeLater?: boolean }>;
  token?: { state: TokenState } | { error: TransferredError };
  /** Addresses that were asked. */
  lookedUp: string[];
}

/** The questions that a check cannot go on without. */
export interface Wanted {
  /** URLs of contexts and of a DID document. */
  urls: string[];
  token?: TokenLocation;
}

/**
 * The end of a task: the result was sent before, or others have to be asked. Errors are converted, because
 * they would lose their class between processes.
 */
export type CheckingOutcome = { isDone: true } | { wanted: Wanted } | { error: TransferredError };

/** Either end of the channel. */
interface Channel {
  send?(message: Uint8Array, done: (error: Error | null) => void): boolean;
}

/** Node.js copies a message in one turn: one of 50 MB would block all others for a tenth of a second. */
const PIECE_BYTES = 1024 * 1024;

/** Sends bytes, and yields to the event loop between the pieces. */
export async function sendPieces(channel: Channel, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    await new Promise<void>((resolve, reject) => {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      channel.send?.(piece, (error) => (error ? reject(error) : resolve()));
    });
}
