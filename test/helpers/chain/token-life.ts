import {
  operate,
  type Operands,
  type OperatedRegistry,
  type OperationName,
} from '../../../devnet/operations';

/**
 * An operation of the contracts, with its name in docs/webhook-reference.md and its transaction.
 */
export interface Operation {
  name: string;
  transactionHash: string;
}

/** A token that has just been minted for the node's account 1 (beneficiary) and account 2 (holder). */
export interface FreshToken {
  tokenId: bigint;
  transactionHash: string;
}

/** The operations, the addition to the name in docs/webhook-reference.md, and the operands. */
const LIFE: readonly (readonly [OperationName, Operands, string?])[] = [
  ['nominate', { to: 3, remark: '0x01' }],
  ['transferBeneficiary', { to: 3, remark: '0x02' }, ', after a nomination'],
  ['rejectTransferBeneficiary', { remark: '0x03' }],
  ['transferHolder', { to: 3, remark: '0x04' }],
  ['rejectTransferHolder', { remark: '0x05' }],
  ['transferHolder', { to: 1 }],
  ['transferBeneficiary', { to: 3, remark: '0x06' }],
  ['rejectTransferBeneficiary', {}],
  ['transferOwners', { to: 3, remark: '0x07' }],
  ['rejectTransferOwners', { remark: '0x08' }],
  ['nominate', { to: 3 }],
  ['transferOwners', { to: 3, remark: '0x09' }, ', after a nomination'],
  ['returnToIssuer', { remark: '0x0a' }],
  ['restore', { remark: '0x0b' }],
  ['returnToIssuer', {}],
  ['burn', { remark: '0x0c' }],
  ['pause', { remark: '0x0d' }],
  ['unpause', { remark: '0x0e' }],
];

/**
 * Takes a fresh token through every operation, each sent by an account that may do it, until it is burned;
 * then pauses and unpauses the registry. Afterwards every type of event has occurred at least once.
 */
export async function liveThrough(
  chain: OperatedRegistry,
  { tokenId, transactionHash }: FreshToken,
): Promise<Operation[]> {
  const operations: Operation[] = [{ name: 'mint', transactionHash }];
  for (const [operation, operands, addition = ''] of LIFE) {
    const sent = await operate(chain, operation, { tokenId, ...operands });
    operations.push({ name: operation + addition, transactionHash: sent.transactionHash });
  }
  return operations;
}
