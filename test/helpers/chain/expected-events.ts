import { type Block, type Interface, type JsonRpcProvider, type Log, type LogDescription } from 'ethers';
import type { CloudEvent } from '../../../service/events/cloud-event';
import {
  TitleEscrowFactory__factory,
  TitleEscrow__factory,
  TradeTrustTokenStandard__factory,
} from '../../../typechain-types';

/** An event as it must arrive, without its id, which the service chooses. */
export type ExpectedEvent = Omit<CloudEvent, 'id'>;

type Payload = CloudEvent['data']['payload'];

/** The meaning of a log, before it gets its envelope. */
interface Meaning {
  type: string;
  tokenId: bigint | undefined;
  payload: Payload;
}

const LOCAL = { chainId: 31337, chainKey: 'hardhat' };
const NOBODY = '0x0000000000000000000000000000000000000000';
const BURNED = '0x000000000000000000000000000000000000dead';
const REGISTRY = TradeTrustTokenStandard__factory.createInterface();
const FACTORY = TitleEscrowFactory__factory.createInterface();
const ESCROW = TitleEscrow__factory.createInterface();

/** The escrow's events of docs/webhook-reference.md: the type of each, and the arguments in its payload. */
const ESCROW_EVENTS: Record<string, [type: string, ...payload: string[]]> = {
  TokenReceived: ['token_received', 'escrowAddress', 'beneficiary', 'holder', 'isMinting', 'remark'],
  Nomination: ['nomination', 'prevNominee', 'nominee', 'remark'],
  BeneficiaryTransfer: ['beneficiary_transfer', 'fromBeneficiary', 'toBeneficiary', 'remark'],
  HolderTransfer: ['holder_transfer', 'fromHolder', 'toHolder', 'remark'],
  ReturnToIssuer: ['return_to_issuer', 'caller', 'remark'],
  Shred: ['shred', 'remark'],
  RejectTransferBeneficiary: ['reject_transfer_beneficiary', 'fromBeneficiary', 'toBeneficiary', 'remark'],
  RejectTransferHolder: ['reject_transfer_holder', 'fromHolder', 'toHolder', 'remark'],
  RejectTransferOwners: [
    'reject_transfer_owners',
    ...['fromBeneficiary', 'toBeneficiary', 'fromHolder', 'toHolder', 'remark'],
  ],
};

/**
 * The events that a subscriber must get of a registry, in chain order. They are derived from the chain alone:
 * all logs from `fromBlock` on, unfiltered, decoded with the interfaces of the contracts. The logs of the
 * factory on chain name the title escrows. No code is shared with the service.
 *
 * @param network that the service takes the chain for.
 */
export async function expectedEvents(
  client: JsonRpcProvider,
  registryAddress: string,
  fromBlock: number,
  network = LOCAL,
): Promise<ExpectedEvent[]> {
  const address = registryAddress.toLowerCase();
  const registry = TradeTrustTokenStandard__factory.connect(address, client);
  const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), client);
  const factoryAddress = (await factory.getAddress()).toLowerCase();
  const created = await factory.queryFilter(factory.filters.TitleEscrowCreated(undefined, address), 0);
  const escrows = new Map(created.map(({ args }) => [args.titleEscrow.toLowerCase(), args.tokenId]));

  const logs = await client.getLogs({ fromBlock, toBlock: 'latest' });
  const numbers = [...new Set(logs.map(({ blockNumber }) => blockNumber))];
  const blocks = await Promise.all(numbers.map((number) => client.getBlock(number)));
  const blockOf = new Map(blocks.map((block) => [block?.number, block]));
  const byTransaction = new Map<string, Log[]>();
  for (const log of logs) {
    const ofTransaction = byTransaction.get(log.transactionHash);
    if (ofTransaction) ofTransaction.push(log);
    else byTransaction.set(log.transactionHash, [log]);
  }
  const besides = (log: Log): Log[] => byTransaction.get(log.transactionHash) ?? [];
  const meaningOf = (log: Log): Meaning | undefined => {
    const emitter = log.address.toLowerCase();
    if (emitter === address) return ofRegistry(log, besides(log));
    if (emitter === factoryAddress) return ofFactory(log, address);
    return escrows.has(emitter) ? ofEscrow(log, escrows.get(emitter)) : undefined;
  };
  return logs.flatMap((log) => {
    const meaning = meaningOf(log);
    const logIndex = besides(log).indexOf(log);
    return meaning ? [envelope(meaning, log, logIndex, blockOf.get(log.blockNumber), address, network)] : [];
  });
}

/** `ofTransaction`: all logs of the transaction. */
function ofRegistry(log: Log, ofTransaction: Log[]): Meaning | undefined {
  const parsed = REGISTRY.parseLog(log);
  if (parsed?.name === 'PauseWithRemark' || parsed?.name === 'UnpauseWithRemark') {
    const type = parsed.name === 'PauseWithRemark' ? 'registry_paused' : 'registry_unpaused';
    return { type, tokenId: undefined, payload: pick(parsed, ['account', 'remark']) };
  }
  if (parsed?.name !== 'Transfer') return undefined;
  const tokenId = parsed.args.getValue('tokenId') as bigint;
  const { from, to } = pick(parsed, ['from', 'to']) as { from: string; to: string };
  const token = { tokenId: tokenId.toString() };
  if (from === NOBODY)
    return { type: 'minted', tokenId, payload: { ...token, ...mintOf(log, to, ofTransaction) } };
  if (to === BURNED) return { type: 'burned', tokenId, payload: token };
  const isSurrender = to === log.address.toLowerCase();
  const escrowAddress = isSurrender ? from : to;
  return { type: isSurrender ? 'surrendered' : 'restored', tokenId, payload: { ...token, escrowAddress } };
}

/** The accounts that a mint names, from the logs of its title escrow in the same transaction. */
function mintOf(mint: Log, escrowAddress: string, ofTransaction: Log[]): Payload {
  const ofEscrow = ofTransaction.filter(({ address }) => address.toLowerCase() === escrowAddress);
  const received = ofEscrow
    .map((log) => ESCROW.parseLog(log))
    .find((parsed) => parsed?.name === 'TokenReceived');
  if (!received) throw new Error(`no TokenReceived in the mint ${mint.transactionHash}`);
  const { beneficiary, holder, remark } = pick(received, ['beneficiary', 'holder', 'remark']);
  return { owner: beneficiary ?? '', holder: holder ?? '', escrowAddress, remark: remark ?? '' };
}

function ofFactory(log: Log, registry: string): Meaning | undefined {
  const parsed = FACTORY.parseLog(log);
  if (parsed?.name !== 'TitleEscrowCreated') return undefined;
  const { titleEscrow, tokenRegistry } = pick(parsed, ['titleEscrow', 'tokenRegistry']);
  if (tokenRegistry !== registry) return undefined;
  const tokenId = parsed.args.getValue('tokenId') as bigint;
  return { type: 'escrow_created', tokenId, payload: { escrowAddress: titleEscrow ?? '' } };
}

function ofEscrow(log: Log, tokenId: bigint | undefined): Meaning | undefined {
  const parsed = (ESCROW as Interface).parseLog(log);
  const known = ESCROW_EVENTS[parsed?.name ?? ''];
  if (!parsed || !known) return undefined;
  const [type, ...names] = known;
  const all: Payload = {
    ...pick(
      parsed,
      names.filter((name) => name !== 'escrowAddress'),
    ),
    escrowAddress: log.address.toLowerCase(),
  };
  return { type, tokenId, payload: Object.fromEntries(names.map((name) => [name, all[name] ?? ''])) };
}

function pick(parsed: LogDescription, names: string[]): Payload {
  const valueOf = (name: string): string | boolean => {
    const value = parsed.args.getValue(name) as string | boolean;
    return typeof value === 'string' ? value.toLowerCase() : value;
  };
  return Object.fromEntries(names.map((name) => [name, valueOf(name)]));
}

function envelope(
  { type, tokenId, payload }: Meaning,
  log: Log,
  logIndex: number,
  block: Block | null | undefined,
  registryAddress: string,
  { chainId, chainKey }: { chainId: number; chainKey: string },
): ExpectedEvent {
  if (block?.hash !== log.blockHash) throw new Error(`block ${log.blockNumber} is not that of its log`);
  return {
    specversion: '1.0',
    source: `urn:service:${chainId}:${registryAddress}`,
    type: `com.service.etr.${type}` as CloudEvent['type'],
    datacontenttype: 'application/json',
    time: new Date(block.timestamp * 1000).toISOString(),
    subject: String(tokenId ?? 0),
    data: {
      chainKey,
      chainId,
      registryAddress,
      tokenId: String(tokenId ?? 0),
      ...(tokenId !== undefined && { tokenIdHex: tokenId.toString(16).padStart(64, '0') }),
      blockNumber: log.blockNumber,
      transactionHash: log.transactionHash,
      logIndex,
      payload,
    },
  };
}
