import { type EventFragment, type Interface, ZeroAddress } from 'ethers';
import { payloadMembersOf, type ChainEventSuffix } from '../../client/event-schemas';
import type { TitleEscrow, TitleEscrowFactory, TradeTrustTokenStandard } from '../../typechain-types';
import type { TypedContractEvent } from '../../typechain-types/common';
import { chainOrder, type ChainLog } from '../chain/read-chain';
import {
  escrowInterface,
  factoryInterface,
  registryInterface,
  titleEscrowAddress,
  type RegistryContracts,
} from './registry-contracts';

/** A genuine log, decoded. */
export interface DecodedLog extends ChainLog {
  type: ChainEventSuffix;
  tokenId: bigint | undefined;
  payload: Record<string, string | boolean>;
}

type Payload = DecodedLog['payload'];

/** The arguments of a contract's event, from its TypeChain binding. */
type ArgumentsOf<Contract extends { filters: object }, Name extends keyof Contract['filters']> =
  Contract['filters'][Name] extends TypedContractEvent<never[], never, infer Arguments> ? Arguments : never;

/** A log of one of these events of a contract. */
type ParsedLog<Contract extends { filters: object }, Name extends keyof Contract['filters']> = {
  [Each in Name]: { name: Each; args: ArgumentsOf<Contract, Each> };
}[Name];

/**
 * Makes a parser of these events. It finds the event by its first topic, which is faster than ethers'
 * `parseLog`: that hashes event signatures for each log until one matches.
 *
 * @returns a function that gives undefined if the log is of another event, or does not decode: it is forged
 *   then.
 */
function parserOf<Contract extends { filters: object }, Name extends string & keyof Contract['filters']>(
  contract: Interface,
  names: readonly Name[],
): (log: ChainLog) => ParsedLog<Contract, Name> | undefined {
  const fragments = names.map((name) => [name, contract.getEvent(name)] as const);
  const byTopic = new Map(fragments.map((one) => [one[1]?.topicHash, one]));
  return ({ topics, data }) => {
    const [name, fragment] = byTopic.get(topics[0]?.toLowerCase()) ?? [];
    const args = fragment ? argumentsOf(fragment, topics, data) : undefined;
    return args && ({ name, args } as ParsedLog<Contract, Name>);
  };
}

const DATA = /^0x([0-9a-f]{2})*$/i;
const WORD = /^0x[0-9a-f]{64}$/i;
/** Characters of a word of 32 bytes, and of an address in it, which is at its end. */
const [OF_WORD, OF_ADDRESS] = [64, 40];

/**
 * Decodes the arguments of an event like ethers' `decodeEventLog`, which takes twenty times as long, as it
 * hashes each address for its checksum. Hex is in lower case. Undefined if ethers would refuse the log.
 */
export function argumentsOf(
  { inputs }: Pick<EventFragment, 'inputs'>,
  topics: readonly string[],
  data: string,
): Record<string, unknown> | undefined {
  if (!DATA.test(data)) return undefined;
  const [fromTopics, fromData] = [topics.slice(1), data.slice(2).match(/.{64}/g) ?? []];
  const args: Record<string, unknown> = {};
  for (const { name, type, indexed } of inputs) {
    const word = indexed ? fromTopics.shift() : `0x${fromData.shift()}`;
    if (word === undefined || !WORD.test(word)) return undefined;
    args[name] = valueOf(type, word.toLowerCase(), data);
    if (args[name] === undefined) return undefined;
  }
  return args;
}

/** The types are those of the events that count. */
function valueOf(type: string, word: string, data: string): string | bigint | boolean | undefined {
  switch (type) {
    case 'address':
      return BigInt(word) >> 160n === 0n ? `0x${word.slice(-OF_ADDRESS)}` : undefined;
    case 'uint256':
      return BigInt(word);
    case 'bool':
      return BigInt(word) !== 0n;
    default: {
      const start = 2 + 2 * Number(BigInt(word));
      const length = data.slice(start, start + OF_WORD);
      const end = start + OF_WORD + 2 * Number(BigInt(`0x${length || 0}`));
      return length.length === OF_WORD && end <= data.length
        ? `0x${data.slice(start + OF_WORD, end).toLowerCase()}`
        : undefined;
    }
  }
}

const REGISTRY_EVENTS = ['Transfer', 'PauseWithRemark', 'UnpauseWithRemark'] as const;

const parseRegistryLog = parserOf<TradeTrustTokenStandard, (typeof REGISTRY_EVENTS)[number]>(
  registryInterface,
  REGISTRY_EVENTS,
);

const parseFactoryLog = parserOf<TitleEscrowFactory, 'TitleEscrowCreated'>(factoryInterface, [
  'TitleEscrowCreated',
]);

/**
 * First topics of the logs of the registry and its factory. Query them with the contracts' addresses:
 * `Transfer` has the same topic as ERC-20's.
 */
export const REGISTRY_AND_FACTORY_TOPICS = [
  ...REGISTRY_EVENTS.map((name) => registryInterface.getEvent(name).topicHash),
  factoryInterface.getEvent('TitleEscrowCreated').topicHash,
];

/** The address that burned tokens are sent to (TradeTrustTokenBurnable, BURN_ADDRESS). */
export const BURN_ADDRESS = '0x000000000000000000000000000000000000dead';

/**
 * Decodes a log of the registry, its factory or one of its title escrows. Undefined if the emitter is not
 * genuine or the log is of no event type in docs/webhook-reference.md.
 */
export function decodeLog(log: ChainLog, contracts: RegistryContracts): DecodedLog | undefined {
  if (log.address === contracts.registry) return decodeRegistryLog(log, contracts);
  if (log.address === contracts.titleEscrowFactory) return decodeFactoryLog(log, contracts);
  return decodeEscrowLog(log, contracts);
}

/** The genuine events among the logs, in chain order. */
export function genuineOf(logs: readonly ChainLog[], contracts: RegistryContracts): DecodedLog[] {
  return [...logs].sort(chainOrder).flatMap((log) => decodeLog(log, contracts) ?? []);
}

function decodeRegistryLog(log: ChainLog, contracts: RegistryContracts): DecodedLog | undefined {
  const parsed = parseRegistryLog(log);
  if (parsed === undefined) return undefined;
  if (parsed.name === 'Transfer') return decodeTransfer(log, parsed.args, contracts);
  const type = parsed.name === 'PauseWithRemark' ? 'registry_paused' : 'registry_unpaused';
  const { account, remark } = parsed.args;
  return { ...log, type, tokenId: undefined, payload: { account, remark } };
}

/**
 * Decodes the registry's `Transfer`, which has four meanings. The owner, holder and remark of a mint are in
 * another log; see `completeMints`.
 */
function decodeTransfer(
  log: ChainLog,
  { tokenId, from, to }: ArgumentsOf<TradeTrustTokenStandard, 'Transfer'>,
  contracts: RegistryContracts,
): DecodedLog | undefined {
  const token = { tokenId: tokenId.toString() };
  const ofToken = { ...log, tokenId };
  const decoded = (type: ChainEventSuffix, payload: Payload): DecodedLog => ({ ...ofToken, type, payload });
  if (from === ZeroAddress) return decoded('minted', { ...token, escrowAddress: to });
  if (to === BURN_ADDRESS) return decoded('burned', token);
  if (to === contracts.registry) return decoded('surrendered', { ...token, escrowAddress: from });
  if (from === contracts.registry) return decoded('restored', { ...token, escrowAddress: to });
  return undefined;
}

/** The factory serves every registry of its chain: only escrows of this registry count. */
function decodeFactoryLog(log: ChainLog, contracts: RegistryContracts): DecodedLog | undefined {
  const parsed = parseFactoryLog(log);
  if (parsed?.args.tokenRegistry !== contracts.registry) return undefined;
  const { titleEscrow: escrowAddress, tokenId } = parsed.args;
  return { ...log, type: 'escrow_created', tokenId, payload: { escrowAddress } };
}

/** The events of title escrows that count. Members of payloads have the names of the logs' arguments. */
const ESCROW_EVENTS = {
  TokenReceived: 'token_received',
  Nomination: 'nomination',
  BeneficiaryTransfer: 'beneficiary_transfer',
  HolderTransfer: 'holder_transfer',
  ReturnToIssuer: 'return_to_issuer',
  Shred: 'shred',
  RejectTransferBeneficiary: 'reject_transfer_beneficiary',
  RejectTransferHolder: 'reject_transfer_holder',
  RejectTransferOwners: 'reject_transfer_owners',
} as const satisfies { [Name in keyof TitleEscrow['filters']]?: ChainEventSuffix };

const ESCROW_EVENT_NAMES = Object.keys(ESCROW_EVENTS) as (keyof typeof ESCROW_EVENTS)[];

const PAYLOAD_MEMBERS = new Map(Object.values(ESCROW_EVENTS).map((type) => [type, payloadMembersOf(type)]));

/** First topics of the logs of title escrows. */
export const ESCROW_TOPICS = ESCROW_EVENT_NAMES.map((name) => escrowInterface.getEvent(name).topicHash);

const parseEscrowLog = parserOf<TitleEscrow, keyof typeof ESCROW_EVENTS>(escrowInterface, ESCROW_EVENT_NAMES);

function decodeEscrowLog(log: ChainLog, contracts: RegistryContracts): DecodedLog | undefined {
  const parsed = parseEscrowLog(log);
  if (parsed?.args.registry !== contracts.registry) return undefined;
  const { tokenId } = parsed.args;
  if (titleEscrowAddress(contracts, tokenId) !== log.address) return undefined;
  const type = ESCROW_EVENTS[parsed.name];
  const values = { escrowAddress: log.address, ...parsed.args } as object as Payload;
  const names = PAYLOAD_MEMBERS.get(type) ?? [];
  const payload = Object.fromEntries(names.map((name) => [name, values[name] ?? '']));
  return { ...log, type, tokenId, payload };
}

/**
 * Adds owner, holder and remark to each mint. The registry's `Transfer` does not have them; the
 * `TokenReceived` of the same token later in the same transaction does.
 */
export function completeMints(decoded: readonly DecodedLog[]): DecodedLog[] {
  const received = new Map<string, Payload>();
  for (const event of decoded) {
    if (event.type === 'token_received' && event.payload.isMinting)
      received.set(mintKey(event), event.payload);
  }
  return decoded.map((event) => {
    const mint = event.type === 'minted' ? received.get(mintKey(event)) : undefined;
    if (!mint) return event;
    const { tokenId = '', escrowAddress = '' } = event.payload;
    const { beneficiary: owner = '', holder = '', remark = '' } = mint;
    return { ...event, payload: { tokenId, owner, holder, escrowAddress, remark } };
  });
}

function mintKey({ transactionHash, tokenId }: DecodedLog): string {
  return `${transactionHash}:${tokenId}`;
}
