import { ZeroAddress } from 'ethers';

/**
 * The state of a token in the contracts (TitleEscrow.sol, TradeTrustTokenStandard.sol). Undefined: no such
 * account.
 */
export interface TokenModel {
  readonly tokenId: bigint;
  readonly escrow: string;
  place: 'unminted' | 'with its escrow' | 'with the registry' | 'burned';
  beneficiary: string;
  holder: string;
  nominee: string | undefined;
  previousBeneficiary: string | undefined;
  previousHolder: string | undefined;
}

/** All operations on a token. */
export const TOKEN_OPERATIONS = [
  'mint',
  'nominate',
  'transferBeneficiary',
  'transferHolder',
  'transferOwners',
  'rejectTransferBeneficiary',
  'rejectTransferHolder',
  'rejectTransferOwners',
  'returnToIssuer',
  'restore',
  'burn',
] as const;
export type TokenOperation = (typeof TOKEN_OPERATIONS)[number];

/** The accounts that an operation names: `first` as beneficiary or nominee, `second` as holder. */
export interface Named {
  first: string;
  second: string;
}

/** A token that is not minted yet. */
export function unmintedToken(tokenId: bigint, escrow: string): TokenModel {
  return {
    tokenId,
    escrow,
    place: 'unminted',
    beneficiary: ZeroAddress,
    holder: ZeroAddress,
    nominee: undefined,
    previousBeneficiary: undefined,
    previousHolder: undefined,
  };
}

/** Whether the contracts allow the operation now. */
export function isLegal(token: TokenModel, operation: TokenOperation, { first, second }: Named): boolean {
  const { beneficiary, holder, nominee, previousBeneficiary, previousHolder } = token;
  const isOneOwner = beneficiary === holder;
  if (operation === 'mint') return token.place === 'unminted';
  if (operation === 'restore' || operation === 'burn') return token.place === 'with the registry';
  if (token.place !== 'with its escrow') return false;
  switch (operation) {
    case 'nominate':
      return first !== beneficiary && first !== (nominee ?? ZeroAddress);
    case 'transferBeneficiary':
      return isOneOwner || first === nominee;
    case 'transferHolder':
      return second !== holder;
    case 'transferOwners':
      return (isOneOwner || first === nominee) && second !== holder;
    case 'rejectTransferBeneficiary':
      return !isOneOwner && previousBeneficiary !== undefined;
    case 'rejectTransferHolder':
      return !isOneOwner && previousHolder !== undefined;
    case 'rejectTransferOwners':
      return isOneOwner && previousBeneficiary !== undefined && previousHolder !== undefined;
    case 'returnToIssuer':
      return isOneOwner;
  }
}

/** Applies an operation to the model as the contracts do. */
export function apply(token: TokenModel, operation: TokenOperation, named: Named): void {
  const { first, second } = named;
  switch (operation) {
    case 'mint':
      token.place = 'with its escrow';
      token.beneficiary = first;
      token.holder = second;
      return;
    case 'nominate':
      token.previousBeneficiary = undefined;
      if (token.beneficiary === token.holder) token.previousHolder = undefined;
      token.nominee = first === ZeroAddress ? undefined : first;
      return;
    case 'transferBeneficiary':
      token.previousHolder = undefined;
      token.previousBeneficiary = token.beneficiary;
      return setBeneficiary(token, first);
    case 'transferHolder':
      if (token.beneficiary === token.holder) token.previousBeneficiary = undefined;
      token.previousHolder = token.holder;
      token.holder = second;
      return;
    case 'transferOwners':
      apply(token, 'transferBeneficiary', named);
      return apply(token, 'transferHolder', named);
    case 'rejectTransferBeneficiary':
      return rejectBeneficiary(token);
    case 'rejectTransferHolder':
      return rejectHolder(token);
    case 'rejectTransferOwners':
      rejectBeneficiary(token);
      return rejectHolder(token);
    case 'returnToIssuer':
      token.place = 'with the registry';
      token.nominee = token.previousBeneficiary = token.previousHolder = undefined;
      return;
    case 'restore':
      token.place = 'with its escrow';
      return;
    case 'burn':
      token.place = 'burned';
      token.beneficiary = token.holder = ZeroAddress;
  }
}

function setBeneficiary(token: TokenModel, beneficiary: string): void {
  token.beneficiary = beneficiary;
  token.nominee = undefined;
}

function rejectBeneficiary(token: TokenModel): void {
  setBeneficiary(token, token.previousBeneficiary ?? ZeroAddress);
  token.previousBeneficiary = undefined;
}

function rejectHolder(token: TokenModel): void {
  token.holder = token.previousHolder ?? ZeroAddress;
  token.previousHolder = undefined;
}
