import { ZeroAddress } from 'ethers';
import { ChainError } from '../base/errors';
import type { DecodedLog } from '../registry/decode-log';

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

/** An operation with all of its logs, at least one. */
export interface FoundOperation {
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
    if (pattern === undefined) throw incomplete(first);
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

function incomplete({ type, log }: DecodedLog): ChainError {
  const remedy = 'Try again, or use another node: this one omits logs.';
  const problem = `In transaction ${log.transactionHash} the event ${type} does not belong to any operation.`;
  return new ChainError('TOKEN_HISTORY_INCOMPLETE', `${problem} ${remedy}`, { remedy, retryable: true });
}
