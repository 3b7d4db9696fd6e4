import { ChainError } from '../base/errors';

/** Remedies by the name of the contract's error. */
const REMEDIES: Readonly<Record<string, string>> = {
  RemarkLengthExceeded: 'remarks may have at most 120 bytes in UTF-8.',
  TokenExists: 'A token with this id exists already.',
  EnforcedPause: 'The registry is paused: its admin must unpause it first.',
  AccessControlUnauthorizedAccount:
    'The wallet has no minter role in this registry: its admin must grant it.',
};

/** The message of every mint that cannot be simulated, so that one search finds all such failures. */
export const FAILED_TO_MINT = 'Failed to mint token';

/**
 * The error of a mint that the registry would refuse. A remark that is too long is the caller's mistake, and
 * has a code of its own.
 *
 * @param reason the name of the contract's error. Undefined if it gave none.
 * @param options.remedy used for a reason that is not listed here.
 */
export function refusedMint(
  reason: string | undefined,
  options: { cause?: unknown; remedy?: string | undefined } = {},
): ChainError {
  const code = reason === 'RemarkLengthExceeded' ? 'REMARK_TOO_LONG' : 'MINT_SIMULATION_FAILED';
  const remedy = REMEDIES[reason ?? ''] ?? options.remedy;
  return new ChainError(code, FAILED_TO_MINT, { ...options, reason, remedy });
}
