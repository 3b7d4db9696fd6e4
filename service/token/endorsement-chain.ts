import { ZeroAddress, getAddress } from 'ethers';
import { ChainError } from '../base/errors';
import type { DecodedLog } from '../registry/decode-log';
import type { EscrowState, TokenState } from '../registry/read-token-state';
import { operationsOf, type TokenOperation } from './token-operations';

/** The addresses that have the roles, checksummed. Undefined if nobody has the role. */
export type Roles = Pick<EscrowState, 'beneficiary' | 'holder' | 'nominee'>;

/** One operation of a token's life, and what it changed. */
export interface Endorsement {
  operation: TokenOperation;
  before: Roles;
  after: Roles;
  /** `0x` and the hex of the bytes that the sender attached. */
  remark: string;
  blockNumber: number;
  blockHash: string;
  transactionHash: string;
}

/** State of a token, in the terms of `TokenState`. */
type Place = TokenState['state'];

interface Situation extends Roles {
  place: Place;
}

/**
 * Derives the endorsements of a token from its logs: one per operation, in chain order.
 *
 * The logs are applied backwards from the state that they led to. Each log names the values before and after
 * it, and the values after it must match the state. A missing log is thereby noticed anywhere, even if the
 * logs begin in the middle of the token's life.
 *
 * @param state the token's state in the block of the last log or later.
 * @throws ChainError TOKEN_HISTORY_INCOMPLETE (retryable) if the logs do not lead to the state.
 */
export function endorsementsOf(
  { logs, isWhole }: { logs: readonly DecodedLog[]; isWhole: boolean },
  state: Exclude<TokenState, { state: 'not minted' }>,
): Endorsement[] {
  const { beneficiary, holder, nominee } = state;
  let now: Situation = { place: state.state, beneficiary, holder, nominee };
  const endorsements: Endorsement[] = [];
  for (const { operation, logs: own, remark } of operationsOf(logs).reverse()) {
    const before = own.reduceRight(unwind, now);
    const [{ log }] = own;
    const { blockNumber, blockHash, transactionHash } = log;
    const change = { before: rolesOf(before), after: rolesOf(now) };
    endorsements.unshift({ operation, ...change, remark, blockNumber, blockHash, transactionHash });
    now = before;
  }
  const isBegun = now.place === 'not minted' && !now.beneficiary && !now.holder && !now.nominee;
  if (isWhole && !isBegun) throw incomplete('does not begin with a mint');
  return endorsements;
}

/** Returns the situation before a log. */
function unwind(after: Situation, { type, payload }: DecodedLog): Situation {
  const move = MOVES[type];
  if (move) {
    if (after.place !== move.to) throw incomplete(`has ${type} where the token is ${after.place}`);
    return { ...after, place: move.from };
  }
  const change = ROLE_CHANGES[type];
  if (change) {
    const { role, from, to } = change;
    expectRole(after, role, payload[to], type);
    return { ...after, [role]: someone(payload[from]) };
  }
  if (type === 'token_received') {
    expectRole(after, 'beneficiary', payload.beneficiary, type);
    expectRole(after, 'holder', payload.holder, type);
  }
  return after;
}

const MOVES: Partial<Record<DecodedLog['type'], { from: Place; to: Place }>> = {
  minted: { from: 'not minted', to: 'in escrow' },
  surrendered: { from: 'in escrow', to: 'returned to issuer' },
  restored: { from: 'returned to issuer', to: 'in escrow' },
  burned: { from: 'returned to issuer', to: 'shredded' },
};

const ROLE_CHANGES: Partial<Record<DecodedLog['type'], { role: keyof Roles; from: string; to: string }>> = {
  nomination: { role: 'nominee', from: 'prevNominee', to: 'nominee' },
  beneficiary_transfer: { role: 'beneficiary', from: 'fromBeneficiary', to: 'toBeneficiary' },
  holder_transfer: { role: 'holder', from: 'fromHolder', to: 'toHolder' },
};

function expectRole(
  roles: Roles,
  role: keyof Roles,
  said: string | boolean | undefined,
  type: DecodedLog['type'],
): void {
  if (roles[role] === someone(said)) return;
  throw incomplete(`has ${type} to ${String(said)} where the ${role} is ${roles[role] ?? 'nobody'}`);
}

function someone(address: string | boolean | undefined): string | undefined {
  return typeof address !== 'string' || address === ZeroAddress ? undefined : getAddress(address);
}

function rolesOf({ beneficiary, holder, nominee }: Situation): Roles {
  return { beneficiary, holder, nominee };
}

function incomplete(problem: string): ChainError {
  const remedy = 'Try again, or use another node: this one omits logs.';
  const message = `The node's history of the token ${problem}. ${remedy}`;
  return new ChainError('TOKEN_HISTORY_INCOMPLETE', message, { remedy, retryable: true });
}
