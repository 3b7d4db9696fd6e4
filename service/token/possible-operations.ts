import type { EscrowState, TokenState } from '../registry/read-token-state';
import type { TokenOperation } from './endorsement-chain';

/** An operation that is possible next. `whom`: its recipient, in words; undefined if it has none. */
export interface PossibleOperation {
  operation: TokenOperation | 'unpause';
  /** An address, or the registry's role: restorer, accepter, minter or admin. */
  by: string;
  whom?: string;
}

const ANYBODY = 'anybody';
const ANYBODY_ELSE = 'anybody else';

/** The operations that the contracts would accept for a token now (docs/states.md). */
export function possibleOperations(state: TokenState): PossibleOperation[] {
  if (state.state === 'shredded') return [];
  if (state.isPaused) return [{ operation: 'unpause', by: 'admin' }];
  if (state.state === 'not minted') return [{ operation: 'mint', by: 'minter' }];
  if (state.state === 'in escrow') return inEscrow(state);
  return [
    { operation: 'restore', by: 'restorer' },
    { operation: 'burn', by: 'accepter' },
  ];
}

function inEscrow(state: EscrowState): PossibleOperation[] {
  const { beneficiary = '', holder = '', nominee } = state;
  const isOneOwner = beneficiary === holder;
  const whom = isOneOwner ? ANYBODY : nominee && `the nominee ${nominee}`;
  const transfers: PossibleOperation[] = whom
    ? [
        { operation: 'transferBeneficiary', by: holder, whom },
        { operation: 'transferOwners', by: holder, whom: `beneficiary: ${whom}; holder: ${ANYBODY_ELSE}` },
      ]
    : [];
  return [
    { operation: 'nominate', by: beneficiary, whom: nominee ? `${ANYBODY_ELSE}, or nobody` : ANYBODY_ELSE },
    ...transfers,
    { operation: 'transferHolder', by: holder, whom: ANYBODY_ELSE },
    ...rejections(state, isOneOwner),
    ...(isOneOwner ? [{ operation: 'returnToIssuer' as const, by: holder }] : []),
  ];
}

/**
 * An account that is both beneficiary and holder can only reject both roles together, and only if both were
 * given.
 */
function rejections(
  { beneficiary = '', holder = '', previousBeneficiary, previousHolder }: EscrowState,
  isOneOwner: boolean,
): PossibleOperation[] {
  if (isOneOwner) {
    if (!previousBeneficiary || !previousHolder) return [];
    const whom = `back to ${previousBeneficiary} and ${previousHolder}`;
    return [{ operation: 'rejectTransferOwners', by: holder, whom }];
  }
  const operations: PossibleOperation[] = [];
  if (previousBeneficiary)
    operations.push({
      operation: 'rejectTransferBeneficiary',
      by: beneficiary,
      whom: `back to ${previousBeneficiary}`,
    });
  if (previousHolder)
    operations.push({ operation: 'rejectTransferHolder', by: holder, whom: `back to ${previousHolder}` });
  return operations;
}
