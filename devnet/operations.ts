import { getAddress, hexlify, isAddress, toUtf8Bytes, type Interface, type JsonRpcProvider } from 'ethers';
import { parseRevert } from '../cli/registry-admin/explain-refusal';
import { Refusal } from '../cli/errors';
import { isReverted } from '../service/chain/refusals';
import { ConfigurationError } from '../service/base/errors';
import { escrowInterface, registryInterface } from '../service/registry/registry-contracts';
import {
  TitleEscrow__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
} from '../typechain-types';
import { anyTokenId } from './any-token-id';

/** A role that may send an operation. The registry's admin is the node's first account. */
type Actor = 'beneficiary' | 'holder' | 'admin';

/**
 * Every operation of the contracts, by its name there: the contract, the account that may send it, and the
 * roles that it gives to accounts.
 */
export const OPERATIONS = {
  nominate: { on: 'escrow', by: 'beneficiary', gives: ['beneficiary'] },
  transferBeneficiary: { on: 'escrow', by: 'holder', gives: ['beneficiary'] },
  transferHolder: { on: 'escrow', by: 'holder', gives: ['holder'] },
  transferOwners: { on: 'escrow', by: 'holder', gives: ['beneficiary', 'holder'] },
  rejectTransferBeneficiary: { on: 'escrow', by: 'beneficiary', gives: [] },
  rejectTransferHolder: { on: 'escrow', by: 'holder', gives: [] },
  rejectTransferOwners: { on: 'escrow', by: 'holder', gives: [] },
  returnToIssuer: { on: 'escrow', by: 'holder', gives: [] },
  restore: { on: 'token', by: 'admin', gives: [] },
  burn: { on: 'token', by: 'admin', gives: [] },
  pause: { on: 'registry', by: 'admin', gives: [] },
  unpause: { on: 'registry', by: 'admin', gives: [] },
} as const satisfies Record<
  string,
  { on: 'escrow' | 'token' | 'registry'; by: Actor; gives: readonly ('beneficiary' | 'holder')[] }
>;

/** The name of an operation. */
export type OperationName = keyof typeof OPERATIONS;

/** An account: its number in the node's list, or its address. */
export type Account = number | string;

/** The operands of an operation. */
export interface Operands {
  tokenId?: string | bigint;
  /** The new beneficiary, holder or nominee; of `transferOwners`, the beneficiary. */
  to?: Account;
  /** The new holder of `transferOwners`, by default `to`. */
  holder?: Account;
  /** The account that sends; by default the one that may. */
  as?: Account;
  /** Hex (`0x…`), or text that is sent in UTF-8, at most 120 bytes. Empty by default. */
  remark?: string;
}

/** An operation that was mined. `as`: the account that sent it. */
export interface Operated {
  transactionHash: string;
  blockNumber: number;
  as: string;
}

/** A chain whose node signs for its accounts, and the registry on it. */
export interface OperatedRegistry {
  client: JsonRpcProvider;
  registryAddress: string;
  accounts: readonly string[];
}

/** Untyped, because the operation is chosen at run time. */
const REGISTRY: Interface = registryInterface;
const ESCROW: Interface = escrowInterface;
const NO_REMARK = '0x';

/**
 * Sends an operation with an account of the node, and waits until it is mined.
 *
 * @throws Refusal OPERATION_REFUSED, whose `reason` is the name of the contract's error, for example
 *   `CallerNotHolder`; nothing was sent. ConfigurationError ARGUMENT_INVALID; RequestError TOKEN_ID_INVALID.
 */
export async function operate(
  chain: OperatedRegistry,
  name: OperationName,
  operands: Operands,
): Promise<Operated> {
  const { client } = chain;
  const { to, data, by } = await callOf(chain, name, operands);
  const from = operands.as === undefined ? await by() : accountOf(chain, 'as', operands.as);
  await client.call({ from, to, data }).catch((cause: unknown) => {
    throw isReverted(cause) ? refused(name, from, cause) : cause;
  });
  if (!chain.accounts.includes(from)) throw notSigning(name, from, operands.as);
  const sent = await (await client.getSigner(from)).sendTransaction({ to, data });
  const receipt = await sent.wait();
  if (receipt === null) throw new Error(`${sent.hash} was not mined`);
  return { transactionHash: receipt.hash, blockNumber: receipt.blockNumber, as: from };
}

interface Call {
  to: string;
  data: string;
  /** The account that may send it. */
  by: () => Promise<string>;
}

async function callOf(chain: OperatedRegistry, name: OperationName, operands: Operands): Promise<Call> {
  const { client, registryAddress, accounts } = chain;
  const { on, by, gives } = OPERATIONS[name];
  const remark = remarkBytes(operands.remark);
  const admin = async (): Promise<string> => accounts[0] ?? '';
  if (on === 'registry')
    return { to: registryAddress, data: REGISTRY.encodeFunctionData(name, [remark]), by: admin };
  if (operands.tokenId === undefined) throw invalid(`${name} needs a token.`);
  const tokenId = anyTokenId(operands.tokenId);
  if (on === 'token')
    return { to: registryAddress, data: REGISTRY.encodeFunctionData(name, [tokenId, remark]), by: admin };
  const { to: first, holder: second = first } = operands;
  const named = gives.map((role) => {
    const isSecond = role === 'holder' && gives.length > 1;
    const account = isSecond ? second : first;
    if (account === undefined) throw invalid(`${name} needs an account: to.`);
    return accountOf(chain, isSecond && operands.holder !== undefined ? 'holder' : 'to', account);
  });
  const address = await escrowOf(chain, tokenId);
  const data = ESCROW.encodeFunctionData(name, [...named, remark]);
  const escrow = TitleEscrow__factory.connect(address, client);
  return { to: address, data, by: () => (by === 'beneficiary' ? escrow.beneficiary() : escrow.holder()) };
}

async function escrowOf({ client, registryAddress }: OperatedRegistry, tokenId: bigint): Promise<string> {
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, client);
  const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), client);
  const address = await factory.getEscrowAddress(registryAddress, tokenId);
  if ((await client.getCode(address)) !== '0x') return address;
  throw invalid(`Registry ${registryAddress} has no token ${tokenId}.`);
}

/** The address of an account. @throws ConfigurationError ARGUMENT_INVALID. */
export function accountOf(
  { accounts }: Pick<OperatedRegistry, 'accounts'>,
  what: string,
  account: Account,
): string {
  const address = typeof account === 'number' ? accounts[account] : account;
  if (address !== undefined && isAddress(address)) return getAddress(address);
  throw invalid(
    `${what} is ${account}: give an account of the node (0 to ${accounts.length - 1}) or an address.`,
  );
}

function remarkBytes(remark: string | undefined): string {
  if (remark === undefined || remark === '') return NO_REMARK;
  return /^0x([0-9a-f]{2})*$/i.test(remark) ? remark : hexlify(toUtf8Bytes(remark));
}

function refused(name: string, from: string, cause: { data: string; reason?: string | null }): Refusal {
  const reason = parseRevert(cause.data)?.name ?? 'no reason';
  const remedy = 'docs/states.md lists who may do what in each state of a token.';
  const message = `${reason}: the contract refuses ${name} of account ${from}. ${remedy} Nothing was sent.`;
  return new Refusal('OPERATION_REFUSED', message, { cause, remedy, reason });
}

function notSigning(name: OperationName, from: string, as: Account | undefined): ConfigurationError {
  const sender = as === undefined ? `The ${OPERATIONS[name].by}, who may send ${name},` : '`as`';
  return invalid(`${sender} is ${from}: the node does not sign for it. Give \`as\` an account of the node.`);
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('ARGUMENT_INVALID', message);
}
