/**
 * Terms, as the registry's v5 contracts use them:
 *
 * - registry: the token contract; title escrow: the contract that owns one token and knows its beneficiary
 *   and its holder; factory: the contract that makes title escrows.
 * - beneficiary: who owns the goods (`owner` of a mint); holder: who holds the document; nominee: the
 *   beneficiary proposed next.
 * - surrendered: the token went back to the registry; restored: the registry gave it back; shredded: the
 *   escrow is ended for good.
 * - feed: the events of one registry on one chain, in chain order, and how far they have been read.
 */

/** The event types that subscribers see, without their prefix. */
export type EventTypeSuffix =
  | 'minted'
  | 'burned'
  | 'surrendered'
  | 'restored'
  | 'registry_paused'
  | 'registry_unpaused'
  | 'escrow_created'
  | 'token_received'
  | 'nomination'
  | 'beneficiary_transfer'
  | 'holder_transfer'
  | 'return_to_issuer'
  | 'shred'
  | 'reject_transfer_beneficiary'
  | 'reject_transfer_holder'
  | 'reject_transfer_owners';

/** One log of the chain, decoded. */
export interface RegistryEvent {
  type: EventTypeSuffix;
  /** Undefined for events of the registry as a whole. */
  tokenId: bigint | undefined;
  payload: Record<string, string | boolean>;
  blockNumber: number;
  blockHash: string;
  /** The block's timestamp in seconds. */
  blockTimestamp: number;
  transactionHash: string;
  /** The log's position among the logs of its transaction, from 0. */
  logIndex: number;
  /** The JSON-RPC `logIndex`: position within the block, which is the order of the block's events. */
  blockLogIndex: number;
}
