import { getAddress, hexlify, isAddress, toUtf8Bytes, type Interface, type JsonRpcProvider } from 'ethers';
import { parseRevert } from '../cli/registry-admin/explain-refusal';
import { invalid, Refusal } from '../cli/errors';
import { isReverted } from '../service/chain/node-errors';
import { RequestError } from '../service/base/errors';
import { escrowInterface, registryInterface } from '../service/registry/registry-contracts';
import { parseTokenId } from '../service/registry/token-id-forms';
import {
  TitleEscrow__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
} from '../typechain-types';

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

/** How an operation is sent. */
export interface Sending {
  /** The account that sends: its number at the node, or its address. By default the one that may. */
  as?: Account;
  /** Text, or hex (`0x…`): at most 120 bytes. */
  remark?: string;
}

/** How an operation is sent that gives a role to `to`. */
export interface Giving extends Sending {
  /** The new beneficiary, holder or nominee; of `transferOwners`, the beneficiary. */
  to: Account;
}

/** The operands of any operation. `holder`: the new holder of `transferOwners`, by default `to`. */
export interface Operands extends Partial<Giving> {
  tokenId?: string | bigint;
  holder?: Account;
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
  const { client, accounts } = chain;
  const { as } = operands;
  const { to, data, sender } = await callOf(chain, name, operands);
  const from = as === undefined ? await sender() : accountOf(accounts, 'as', as);
  await client.call({ from, to, data }).catch((cause: unknown) => {
    if (!isReverted(cause)) throw cause;
    const reason = parseRevert(cause.data)?.name ?? 'no reason';
    const remedy = 'docs/states.md lists who may do what in each state of a token.';
    const message = `${reason}: the contract refuses ${name} of account ${from}. ${remedy} Nothing was sent.`;
    throw new Refusal('OPERATION_REFUSED', message, { cause, remedy, reason });
  });
  if (!accounts.includes(from)) {
    const who = as === undefined ? `The ${OPERATIONS[name].by}, who may send ${name},` : '`as`';
    throw invalid(`${who} is ${from}: the node does not sign for it.`, 'Give `as` an account of the node.');
  }
  const sent = await (await client.getSigner(from)).sendTransaction({ to, data });
  const receipt = await sent.wait();
  if (receipt === null) throw new Error(`${sent.hash} was not mined`);
  return { transactionHash: receipt.hash, blockNumber: receipt.blockNumber, as: from };
}

/** The call of an operation, and the account that may send it. */
async function callOf(
  { client, registryAddress, accounts }: OperatedRegistry,
  name: OperationName,
  { tokenId: id, to, holder, remark = '' }: Operands,
): Promise<{ to: string; data: string; sender: () => Promise<string> }> {
  const { on, by, gives } = OPERATIONS[name];
  const bytes = /^0x([0-9a-f]{2})*$/i.test(remark) ? remark : hexlify(toUtf8Bytes(remark));
  const toRegistry = (...args: unknown[]) => ({
    to: registryAddress,
    data: REGISTRY.encodeFunctionData(name, [...args, bytes]),
    sender: async () => accounts[0] ?? '',
  });
  if (on === 'registry') return toRegistry();
  if (id === undefined) throw invalid(`${name} needs a token.`);
  const tokenId = anyTokenId(id);
  if (on === 'token') return toRegistry(tokenId);
  const given = gives.map((_, index) => {
    const [what, account] = index === 1 && holder !== undefined ? ['holder', holder] : ['to', to];
    if (account === undefined) throw invalid(`${name} needs an account: to.`);
    return accountOf(accounts, what, account);
  });
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, client);
  const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), client);
  const address = await factory.getEscrowAddress(registryAddress, tokenId);
  if ((await client.getCode(address)) === '0x')
    throw invalid(`Registry ${registryAddress} has no token ${tokenId}.`);
  const escrow = TitleEscrow__factory.connect(address, client);
  return {
    to: address,
    data: ESCROW.encodeFunctionData(name, [...given, bytes]),
    sender: () => (by === 'beneficiary' ? escrow.beneficiary() : escrow.holder()),
  };
}

/** The address of an account. @throws ConfigurationError ARGUMENT_INVALID. */
export function accountOf(accounts: readonly string[], what: string, account: Account): string {
  const address = typeof account === 'number' ? accounts[account] : account;
  if (address !== undefined && isAddress(address)) return getAddress(address);
  throw invalid(
    `${what} is ${account}: give an account of the node (0 to ${accounts.length - 1}) or an address.`,
  );
}

/**
 * The token id in any of its forms: 64 hexadecimal digits, as in a credential; `0x` and hexadecimal digits;
 * decimal digits, as in an event; a bigint.
 *
 * @throws RequestError TOKEN_ID_INVALID.
 */
export function anyTokenId(tokenId: string | bigint): bigint {
  const parsed = parseTokenId(typeof tokenId === 'bigint' ? `0x${tokenId.toString(16)}` : tokenId);
  if (parsed !== undefined) return parsed;
  throw new RequestError('TOKEN_ID_INVALID', `"${tokenId}" is not a token id.`);
}

type OfToken<Operands extends unknown[]> = (
  tokenId: string | bigint,
  ...operands: Operands
) => Promise<Operated>;

/**
 * The operations of the contracts, by their names there. Each resolves when it is mined. A token id is 64
 * hexadecimal digits, `0x` and hexadecimal digits, decimal digits or a bigint. `holder` of `transferOwners`
 * is `to` by default.
 *
 * Each rejects with an error with the code OPERATION_REFUSED, whose `reason` is the name of the contract's
 * error, for example `CallerNotHolder`, if the contract refuses; then nothing was sent.
 */
export type Operations = {
  [Name in OperationName]: (typeof OPERATIONS)[Name] extends { on: 'registry' }
    ? (sending?: Sending) => Promise<Operated>
    : (typeof OPERATIONS)[Name]['gives'] extends readonly []
      ? OfToken<[sending?: Sending]>
      : OfToken<[giving: Name extends 'transferOwners' ? Giving & { holder?: Account } : Giving]>;
};

/** A function for each operation of the contracts. Those of a token take its id first. */
export function operationsOn(registry: OperatedRegistry): Operations {
  const names = Object.keys(OPERATIONS) as OperationName[];
  const functions = names.map((name) => [
    name,
    OPERATIONS[name].on === 'registry'
      ? (operands?: Operands) => operate(registry, name, { ...operands })
      : (tokenId: string, operands?: Operands) => operate(registry, name, { ...operands, tokenId }),
  ]);
  return Object.fromEntries(functions) as Operations;
}
