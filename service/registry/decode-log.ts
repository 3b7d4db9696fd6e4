import { ZeroAddress, type EventFragment, type Interface, type Result } from 'ethers';
import type { ChainEventPayload } from '../../receiver/event-schemas';
import type { ChainLog } from '../chain/read-chain';
import { escrowInterface, factoryInterface, registryInterface } from './abi';
import type { RegistryContracts } from './registry-contracts';
import type { EventTypeSuffix } from './registry-event';
import { titleEscrowAddress } from './title-escrow-address';

/** A decoded log, not yet combined with its block. */
export interface DecodedLog {
  type: EventTypeSuffix;
  tokenId: bigint | undefined;
  payload: Record<string, string | boolean>;
  log: ChainLog;
}

type Payload = DecodedLog['payload'];

/**
 * The events of a contract by first topic. It is faster than ethers' `parseLog`, which hashes event
 * signatures for each log until one matches.
 */
interface EventDecoder {
  contract: Interface;
  events: ReadonlyMap<string, EventFragment>;
}

function decoderOf(contract: Interface): EventDecoder {
  const events = new Map<string, EventFragment>();
  contract.forEachEvent((event) => events.set(event.topicHash, event));
  return { contract, events };
}

const REGISTRY = decoderOf(registryInterface);
const FACTORY = decoderOf(factoryInterface);
const ESCROW = decoderOf(escrowInterface);

/** The address that burned tokens are sent to (TradeTrustTokenBurnable, BURN_ADDRESS). */
export const BURN_ADDRESS = '0x000000000000000000000000000000000000dead';

/**
 * Decodes a log of the registry, its factory or one of its title escrows. Undefined if the emitter is not
 * genuine or the log is of no event type in docs/webhooks.md.
 */
export function decodeLog(log: ChainLog, contracts: RegistryContracts): DecodedLog | undefined {
  const emitter = log.address.toLowerCase();
  if (emitter === contracts.registry) return decodeRegistryLog(log, contracts);
  if (emitter === contracts.titleEscrowFactory) return decodeFactoryLog(log, contracts);
  return decodeEscrowLog(log, emitter, contracts);
}

/** The genuine events among the logs, in chain order. */
export function genuineOf(logs: readonly ChainLog[], contracts: RegistryContracts): DecodedLog[] {
  return [...logs].sort(chainOrder).flatMap((log) => decodeLog(log, contracts) ?? []);
}

function chainOrder(left: ChainLog, right: ChainLog): number {
  return left.blockNumber - right.blockNumber || left.index - right.index;
}

function decodeRegistryLog(log: ChainLog, contracts: RegistryContracts): DecodedLog | undefined {
  const parsed = parse(REGISTRY, log);
  switch (parsed?.name) {
    case 'Transfer':
      return decodeTransfer(log, parsed, contracts);
    case 'PauseWithRemark':
    case 'UnpauseWithRemark': {
      const type = parsed.name === 'PauseWithRemark' ? 'registry_paused' : 'registry_unpaused';
      return { type, tokenId: undefined, payload: fields(parsed, ['account', 'remark']), log };
    }
    default:
      return undefined;
  }
}

/**
 * Decodes the registry's `Transfer`, which has four meanings. The owner, holder and remark of a mint are in
 * another log; see `completeMints`.
 */
function decodeTransfer(
  log: ChainLog,
  parsed: ParsedLog,
  contracts: RegistryContracts,
): DecodedLog | undefined {
  const { from, to } = fields(parsed, ['from', 'to']) as { from: string; to: string };
  const tokenId = parsed.args.getValue('tokenId') as bigint;
  const token = { tokenId: tokenId.toString() };
  const decoded = (type: EventTypeSuffix, payload: Payload): DecodedLog => ({ type, tokenId, payload, log });
  if (from === ZeroAddress) return decoded('minted', { ...token, escrowAddress: to });
  if (to === BURN_ADDRESS) return decoded('burned', token);
  if (to === contracts.registry) return decoded('surrendered', { ...token, escrowAddress: from });
  if (from === contracts.registry) return decoded('restored', { ...token, escrowAddress: to });
  return undefined;
}

/** The factory serves every registry of its chain: only escrows of this registry count. */
function decodeFactoryLog(log: ChainLog, contracts: RegistryContracts): DecodedLog | undefined {
  const parsed = parse(FACTORY, log);
  if (parsed?.name !== 'TitleEscrowCreated') return undefined;
  const { tokenRegistry, titleEscrow } = fields(parsed, ['tokenRegistry', 'titleEscrow']);
  if (tokenRegistry !== contracts.registry || titleEscrow === undefined) return undefined;
  const tokenId = parsed.args.getValue('tokenId') as bigint;
  return { type: 'escrow_created', tokenId, payload: { escrowAddress: titleEscrow }, log };
}

/** A type of event, and the log's arguments that its payload has: members of the published schema. */
type EscrowEvent = {
  [Type in EventTypeSuffix]: { type: Type; payload: (keyof ChainEventPayload<Type>)[] };
}[EventTypeSuffix];

const ESCROW_EVENTS: Record<string, EscrowEvent> = {
  TokenReceived: { type: 'token_received', payload: ['beneficiary', 'holder', 'isMinting', 'remark'] },
  Nomination: { type: 'nomination', payload: ['prevNominee', 'nominee', 'remark'] },
  BeneficiaryTransfer: {
    type: 'beneficiary_transfer',
    payload: ['fromBeneficiary', 'toBeneficiary', 'remark'],
  },
  HolderTransfer: { type: 'holder_transfer', payload: ['fromHolder', 'toHolder', 'remark'] },
  ReturnToIssuer: { type: 'return_to_issuer', payload: ['caller', 'remark'] },
  Shred: { type: 'shred', payload: ['remark'] },
  RejectTransferBeneficiary: {
    type: 'reject_transfer_beneficiary',
    payload: ['fromBeneficiary', 'toBeneficiary', 'remark'],
  },
  RejectTransferHolder: { type: 'reject_transfer_holder', payload: ['fromHolder', 'toHolder', 'remark'] },
  RejectTransferOwners: {
    type: 'reject_transfer_owners',
    payload: ['fromBeneficiary', 'toBeneficiary', 'fromHolder', 'toHolder', 'remark'],
  },
};

function decodeEscrowLog(
  log: ChainLog,
  emitter: string,
  contracts: RegistryContracts,
): DecodedLog | undefined {
  const parsed = parse(ESCROW, log);
  const event = parsed && ESCROW_EVENTS[parsed.name];
  if (!event) return undefined;
  const tokenId = parsed.args.getValue('tokenId') as bigint;
  if (fields(parsed, ['registry']).registry !== contracts.registry) return undefined;
  if (titleEscrowAddress(contracts, tokenId) !== emitter) return undefined;
  const payload = fields(parsed, event.payload);
  if (event.type === 'token_received')
    return { ...event, tokenId, payload: { escrowAddress: emitter, ...payload }, log };
  return { ...event, tokenId, payload, log };
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

function mintKey({ log, tokenId }: DecodedLog): string {
  return `${log.transactionHash}:${tokenId}`;
}

/** An event's name and arguments. */
interface ParsedLog {
  name: string;
  args: Result;
}

/**
 * Returns undefined if the log does not decode: it is forged then. ethers throws the error of an invalid
 * argument only when the argument is read.
 */
function parse({ contract, events }: EventDecoder, { topics, data }: ChainLog): ParsedLog | undefined {
  const fragment = events.get(topics[0]?.toLowerCase() ?? '');
  if (fragment === undefined) return undefined;
  try {
    const args = contract.decodeEventLog(fragment, data, topics);
    args.toArray();
    return { name: fragment.name, args };
  } catch {
    return undefined;
  }
}

/** The arguments by name. Addresses and hex are in lower case. */
function fields(parsed: ParsedLog, names: string[]): Payload {
  const values = names.map((name): [string, string | boolean] => {
    const value: unknown = parsed.args.getValue(name);
    return [name, typeof value === 'string' ? value.toLowerCase() : Boolean(value)];
  });
  return Object.fromEntries(values);
}
