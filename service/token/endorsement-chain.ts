import { ZeroAddress } from 'ethers';
import { MOVES, ROLE_CHANGES } from '../../client/events';
import { ChainError } from '../base/errors';
import type { DecodedLog } from '../registry/decode-log';
import { partyOf, type EscrowState, type TokenState } from '../registry/read-token-state';

/** Operations on a token: functions of its registry and its title escrow (docs/states.md). */
export type TokenOperation =
  | 'mint'
  | 'nominate'
  | 'transferBeneficiary'
  | 'transferHolder'
  | 'transferOwners'
  | 'rejectTransferBeneficiary'
  | 'rejectTransferHolder'
  | 'rejectTransferOwners'
  | 'returnToIssuer'
  | 'restore'
  | 'burn';

/** The addresses that have the roles, checksummed. Undefined if nobody has the role. */
export type Roles = Pick<EscrowState, 'beneficiary' | 'holder' | 'nominee'>;

/** One operation of a token's life, and what it changed. */
export interface Endorsement {
  operation: TokenOperation;
  /** The account that did it. Undefined for an operation of a registry's role, which several may have. */
  by: string | undefined;
  before: Roles;
  after: Roles;
  /** `0x` and the hex of the bytes that the sender attached. */
  remark: string;
  blockNumber: number;
  blockHash: string;
  transactionHash: string;
}

/** The only role that may do an operation of a title escrow. */
const ROLE_THAT_MAY: Partial<Record<TokenOperation, 'beneficiary' | 'holder'>> = {
  nominate: 'beneficiary',
  transferBeneficiary: 'holder',
  transferHolder: 'holder',
  transferOwners: 'holder',
  rejectTransferBeneficiary: 'beneficiary',
  rejectTransferHolder: 'holder',
  rejectTransferOwners: 'holder',
  returnToIssuer: 'holder',
};

/** A token between two logs. */
export interface Situation extends Roles {
  state: TokenState['state'];
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
  state: Situation,
): Endorsement[] {
  let now = state;
  const endorsements: Endorsement[] = [];
  for (const { operation, logs: own, remark } of operationsOf(logs).reverse()) {
    const before = own.reduceRight(unwind, now);
    const [{ log }] = own;
    const { blockNumber, blockHash, transactionHash } = log;
    const change = { before: rolesOf(before), after: rolesOf(now) };
    const role = ROLE_THAT_MAY[operation];
    endorsements.unshift({
      operation,
      by: role && before[role],
      ...change,
      remark,
      blockNumber,
      blockHash,
      transactionHash,
    });
    now = before;
  }
  const isBegun = now.state === 'not minted' && !now.beneficiary && !now.holder && !now.nominee;
  if (isWhole && !isBegun) throw incomplete('does not begin with a mint');
  return endorsements;
}

/** The situation before a log. */
function unwind(after: Situation, { type, payload }: DecodedLog): Situation {
  const move = MOVES[type];
  if (move) {
    if (after.state !== move.to) throw incomplete(`has ${type} where the token is ${after.state}`);
    return { ...after, state: move.from };
  }
  const change = ROLE_CHANGES[type];
  if (change) {
    const { role, from, to } = change;
    expectRole(after, role, payload[to], type);
    return { ...after, [role]: partyOf(payload[from]) };
  }
  if (type === 'token_received') {
    expectRole(after, 'beneficiary', payload.beneficiary, type);
    expectRole(after, 'holder', payload.holder, type);
  }
  return after;
}

function expectRole(
  roles: Roles,
  role: keyof Roles,
  said: string | boolean | undefined,
  type: DecodedLog['type'],
): void {
  if (roles[role] === partyOf(said)) return;
  throw incomplete(`has ${type} to ${String(said)} where the ${role} is ${roles[role] ?? 'nobody'}`);
}

function rolesOf({ beneficiary, holder, nominee }: Situation): Roles {
  return { beneficiary, holder, nominee };
}

/** An operation with all of its logs, at least one. */
interface FoundOperation {
  operation: TokenOperation;
  logs: [DecodedLog, ...DecodedLog[]];
  /** The sender's remark in hex. */
  remark: string;
}

type Step = DecodedLog['type'] | 'nomination that ended';

/**
 * The logs of each operation, in order. The first match counts: a long pattern comes before those it begins
 * with.
 */
const PATTERNS: readonly (readonly [TokenOperation, ...Step[]])[] = [
  ['mint', 'escrow_created', 'minted', 'beneficiary_transfer', 'holder_transfer', 'token_received'],
  ['burn', 'beneficiary_transfer', 'holder_transfer', 'shred', 'burned'],
  ['returnToIssuer', 'nomination', 'surrendered', 'return_to_issuer'],
  ['restore', 'restored', 'token_received'],
  ['rejectTransferOwners', 'beneficiary_transfer', 'holder_transfer', 'reject_transfer_owners'],
  ['rejectTransferBeneficiary', 'beneficiary_transfer', 'reject_transfer_beneficiary'],
  ['rejectTransferHolder', 'holder_transfer', 'reject_transfer_holder'],
  ['transferOwners', 'beneficiary_transfer', 'nomination that ended', 'holder_transfer'],
  ['transferOwners', 'beneficiary_transfer', 'holder_transfer'],
  ['transferBeneficiary', 'beneficiary_transfer', 'nomination that ended'],
  ['transferBeneficiary', 'beneficiary_transfer'],
  ['transferHolder', 'holder_transfer'],
  ['nominate', 'nomination'],
];

/**
 * Groups a token's logs into operations, in order. A transaction may contain several if a contract sent it.
 * `transferBeneficiary` followed by `transferHolder` with the same remark is read as `transferOwners`.
 *
 * @throws ChainError TOKEN_HISTORY_INCOMPLETE (retryable) if a log matches no operation: another log is
 *   missing.
 */
export function operationsOf(logs: readonly DecodedLog[]): FoundOperation[] {
  const found: FoundOperation[] = [];
  for (let at = 0; at < logs.length;) {
    const [first, ...rest] = logs.slice(at);
    if (first === undefined) break;
    const here = [first, ...rest.filter(({ log }) => log.transactionHash === first.log.transactionHash)];
    const pattern = PATTERNS.find((candidate) => fits(candidate, here));
    if (pattern === undefined) {
      const { transactionHash } = first.log;
      const event = `${first.type} in transaction ${transactionHash}`;
      throw incomplete(`has ${event}, which does not belong to any operation`);
    }
    const [operation, ...steps] = pattern;
    const own: FoundOperation['logs'] = [first, ...here.slice(1, steps.length)];
    found.push({ operation, logs: own, remark: remarkOf(own) });
    at += steps.length;
  }
  return found;
}

function fits(
  [operation, ...steps]: readonly [TokenOperation, ...Step[]],
  logs: readonly DecodedLog[],
): boolean {
  if (!steps.every((step, index) => isStep(step, logs[index]))) return false;
  if (operation !== 'transferOwners') return true;
  // The second half may be another operation: a transfer of the holder alone, or one that is rejected.
  const isRejected = logs[steps.length]?.type === 'reject_transfer_holder';
  return !isRejected && logs[0]?.payload.remark === logs[steps.length - 1]?.payload.remark;
}

function isStep(step: Step, log: DecodedLog | undefined): boolean {
  if (step !== 'nomination that ended') return log?.type === step;
  if (log?.type !== 'nomination') return false;
  const { prevNominee, nominee } = log.payload;
  // A nomination change from the zero address to itself is the first log of returnToIssuer, which may come
  // next.
  return nominee === ZeroAddress && prevNominee !== ZeroAddress;
}

/**
 * The sender's remark is in the operation's last event. A nomination that a transfer ends carries the
 * contract's own remark instead.
 */
function remarkOf(logs: FoundOperation['logs']): string {
  const said = logs.filter(({ type }, index) => type !== 'nomination' || index === 0);
  const remarks = said.flatMap(({ payload }) => (typeof payload.remark === 'string' ? [payload.remark] : []));
  return remarks.at(-1) ?? '0x';
}

function incomplete(problem: string): ChainError {
  const remedy = 'Try again, or use another node: this one omits logs.';
  const message = `The history of the token ${problem}. ${remedy}`;
  return new ChainError('TOKEN_HISTORY_INCOMPLETE', message, { remedy });
}
