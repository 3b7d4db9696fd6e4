import { ZeroAddress } from 'ethers';
import { ChainError } from '../base/errors';
import type { DecodedLog } from '../registry/decode-log';

/** What can be done to a token: functions of its registry and its title escrow (docs/states.md). */
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

/** One operation with all of its logs, of which there is at least one. */
export interface FoundOperation {
  operation: TokenOperation;
  logs: [DecodedLog, ...DecodedLog[]];
  /** What the sender attached, in hex. */
  remark: string;
}

type Step = DecodedLog['type'] | 'nomination that ended';

/**
 * The logs of each operation, in order. The first that fits is meant: the long ones come before their own
 * beginnings.
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
 * The operations that a token's logs are of, in order. Several may be in one transaction, when a contract
 * sent them. `transferBeneficiary` and `transferHolder` in a row with the same remark are what
 * `transferOwners` is.
 *
 * @throws ChainError TOKEN_HISTORY_INCOMPLETE (retryable) when a log is of no operation: another one is
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
  // The second half may be another operation's: a transfer of the holder alone, or one that is rejected.
  const isRejected = logs[steps.length]?.type === 'reject_transfer_holder';
  return !isRejected && logs[0]?.payload.remark === logs[steps.length - 1]?.payload.remark;
}

function isStep(step: Step, log: DecodedLog | undefined): boolean {
  if (step !== 'nomination that ended') return log?.type === step;
  if (log?.type !== 'nomination') return false;
  const { prevNominee, nominee } = log.payload;
  // From nobody to nobody is how returnToIssuer begins, which may come next.
  return nominee === ZeroAddress && prevNominee !== ZeroAddress;
}

/**
 * The last event of an operation has it; the contract's own remark, of a nomination that a transfer ends, is
 * not the sender's.
 */
function remarkOf(logs: FoundOperation['logs']): string {
  const said = logs.filter(({ type }, index) => type !== 'nomination' || index === 0);
  const remarks = said.flatMap(({ payload }) => (typeof payload.remark === 'string' ? [payload.remark] : []));
  return remarks.at(-1) ?? '0x';
}

function incomplete({ type, log }: DecodedLog): ChainError {
  const remedy = 'Ask again, or another node: this one leaves logs out.';
  const message = `In transaction ${log.transactionHash} the event ${type} stands where none of the operations has it. ${remedy}`;
  return new ChainError('TOKEN_HISTORY_INCOMPLETE', message, { remedy, retryable: true });
}
