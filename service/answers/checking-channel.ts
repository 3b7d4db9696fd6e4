import type { FetchedBytes } from '../did/fetched-json';
import type { TransferredError } from '../issuance/transferred-error';
import type { TokenState } from '../registry/read-token-state';
import type { NetworkNode } from '../registry/registry-contracts';
import type { TokenLocation } from '../token/token-location';

// The messages between the service and the processes that check. Before a task come the bytes to check, in
// pieces, and the answers of hosts, one by one.

/** The work of a process. What a stranger sent is never read in a process that knows URLs of nodes. */
export interface CheckingTask {
  kind: 'validate' | 'verify' | 'derive' | 'evidence';
  /** URL of the own context of Bills of Lading. It is never fetched. */
  contextUrl: string;
  /** Where evidence is read. */
  source?: { node: NetworkNode; location: TokenLocation };
}

/** `mayComeLater`: there is no answer now. */
export type HostAnswer = FetchedBytes & { mayComeLater: boolean };

/** The answers of others, as far as they are known. */
export interface Found {
  /** By their URLs. */
  fetched: Map<string, HostAnswer>;
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

/** The messages to a process. */
export type ToProcess =
  Uint8Array | { href: string; answer: HostAnswer } | { task: CheckingTask; found: Omit<Found, 'fetched'> };

/** Either end of the channel. */
interface Channel {
  send?(message: object, done: (error: Error | null) => void): boolean;
}

/** Sends a message, and waits until it is sent. */
export async function send(channel: Channel, message: ToProcess | CheckingOutcome): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    channel.send?.(message, (error) => (error ? reject(error) : resolve()));
  });
}

/** Node.js copies a message in one turn: one of 50 MB would block all others for a tenth of a second. */
const PIECE_BYTES = 1024 * 1024;

/** Sends bytes, and yields to the event loop between the pieces. */
export async function sendPieces(channel: Channel, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    await send(channel, bytes.subarray(at, at + PIECE_BYTES));
}
