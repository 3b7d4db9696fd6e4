import type { DecodedLog } from './decode-log';

/**
 * Terms of the registry's v5 contracts:
 *
 * - registry: the token contract; title escrow: the contract that owns one token and stores its beneficiary
 *   and its holder; factory: the contract that creates title escrows.
 * - beneficiary: the owner of the goods (`owner` of a mint); holder: the holder of the document; nominee: the
 *   proposed next beneficiary.
 * - surrendered: the token was returned to the registry; restored: the registry gave it back; shredded: the
 *   title escrow was ended for good.
 * - feed: the events of one registry on one chain, in chain order, with the cursor up to which its blocks are
 *   read.
 */

/**
 * A decoded log, with the time of its block and its place there. Nodes that count logs differently agree on
 * the place.
 */
export interface RegistryEvent extends Pick<
  DecodedLog,
  'type' | 'tokenId' | 'payload' | 'blockNumber' | 'blockHash' | 'transactionHash'
> {
  /** Timestamp of the block in seconds. */
  blockTimestamp: number;
  /** Position among the logs of the transaction, from 0. */
  logIndex: number;
  /** The `logIndex` of JSON-RPC: the position within the block, in whose order a block's events are. */
  blockLogIndex: number;
  /** Its place in a trace, as a `traceparent`. */
  trace?: string | undefined;
}
