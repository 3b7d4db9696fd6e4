import type { ChainEventSuffix } from './event-schemas';

/** The state of a token. Addresses are in lower case; null stands for nobody. */
export interface TokenState {
  /**
   * - `in escrow`: the beneficiary and the holder can act.
   * - `returned to issuer`: surrendered to the registry, whose issuer restores or shreds it.
   * - `shredded`: taken out of circulation for good.
   */
  state: 'not minted' | 'in escrow' | 'returned to issuer' | 'shredded';
  escrow: string | null;
  beneficiary: string | null;
  holder: string | null;
  nominee: string | null;
}

/** The zero address stands for nobody. */
export const NOBODY = `0x${'00'.repeat(20)}`;

/** The states of a token that events move it from and to. */
export const MOVES: Partial<Record<ChainEventSuffix, Record<'from' | 'to', TokenState['state']>>> = {
  minted: { from: 'not minted', to: 'in escrow' },
  surrendered: { from: 'in escrow', to: 'returned to issuer' },
  restored: { from: 'returned to issuer', to: 'in escrow' },
  burned: { from: 'returned to issuer', to: 'shredded' },
};

type Role = 'beneficiary' | 'holder' | 'nominee';

/** The roles that events change, and the members of their payloads with the parties before and after. */
export const ROLE_CHANGES: Partial<Record<ChainEventSuffix, { role: Role; from: string; to: string }>> = {
  nomination: { role: 'nominee', from: 'prevNominee', to: 'nominee' },
  beneficiary_transfer: { role: 'beneficiary', from: 'fromBeneficiary', to: 'toBeneficiary' },
  holder_transfer: { role: 'holder', from: 'fromHolder', to: 'toHolder' },
};

/**
 * The state after an event. Events that repeat the content of others change nothing.
 *
 * @param partyOf the party with an address of the payload; the zero address is nobody.
 */
export function afterEvent<Party, Token extends Pick<TokenState, 'state'> & Record<Role, Party>>(
  token: Token,
  { type, payload }: { type: ChainEventSuffix; payload: object },
  partyOf: (address: string) => Party,
): Token {
  const move = MOVES[type];
  if (move) return { ...token, state: move.to };
  const change = ROLE_CHANGES[type];
  if (change === undefined) return token;
  return { ...token, [change.role]: partyOf((payload as Record<string, string>)[change.to] ?? NOBODY) };
}
