import type { Issuance } from './issuance';

/** Mints the tokens of one wallet on one chain: the only one who sends transactions of this wallet, as far as this service goes. */
export interface MintLane {
  /**
   * Mints the token of an issuance that is in the journal. Goes on until it is mined or failed, whoever still waits.
   *
   * @returns the hash of the mined transaction.
   * @throws ChainError with the code of the failure.
   */
  mint(issuance: Issuance): Promise<string>;
  /** Sends nothing more; what is in flight is finished at the next start. */
  stop(): Promise<void>;
}
