import { keccak256, Transaction } from 'ethers';
import { orUndefined } from '../service/base/errors';
import { decodeLog, type DecodedLog } from '../service/registry/decode-log';
import {
  decodeHeader,
  decodeReceiptLogs,
  type Header,
  type ReceiptLog,
} from '../service/evidence/block-encoding';
import type { EvidenceBlock, EvidenceEvent, EvidenceFile } from '../service/evidence/evidence-file';
import { createStatements, THE_FILE, type Statement, type Statements } from './statements';
import { keyAt, openTrie } from '../service/evidence/tries';

/** A block of a file, with what its hash proves. */
export interface CheckedBlock {
  block: EvidenceBlock;
  header: Omit<Header, 'number'>;
  /** Whether the header's hash is the block's. */
  isProven: boolean;
  transactions: CheckedTransaction[];
}

export interface CheckedTransaction {
  hash: string;
  position: number;
  /** The logs of its receipt. Undefined if the file has no readable receipt. */
  logs: ReceiptLog[] | undefined;
  /** Whether the block's hash proves them. */
  hasProvenLogs: boolean;
  /** The signer, if that is proven. */
  sender: string | undefined;
}

/** An event of the token, or of its registry, that the file lists. */
export interface CheckedEvent extends DecodedLog {
  timestamp: number;
  isProven: boolean;
  sender: string | undefined;
}

/** Reads the blocks of a file: what their hashes prove of them. */
export function checkBlocks(file: EvidenceFile): { blocks: CheckedBlock[]; statements: Statement[] } {
  const { made, proven, claimed, refuted } = createStatements('blocks');
  const transactions = createStatements('transactions');
  const blocks: CheckedBlock[] = [];
  for (const block of file.blocks) {
    const read = headerOf(block);
    const [name, given] = [`Block ${block.number}`, [block.hash]];
    if (typeof read === 'string') {
      refuted(`${name} has the hash ${block.hash}.`, read, { given });
      continue;
    }
    const { header, isProven } = read;
    const says = `${name} was made at ${timeOf(header.timestamp)}.`;
    if (isProven) proven(says, 'its header has the hash listed', { given });
    else claimed(says, `${problemOf(block.header)}; ${THE_FILE}`);
    const checked = { block, header, isProven, transactions: [] as CheckedTransaction[] };
    checked.transactions = transactionsOf(file, checked, transactions);
    blocks.push(checked);
  }
  const lineage = lineageProblem(blocks);
  const areAll = blocks.length === file.blocks.length;
  const says = 'The blocks listed are of one chain.';
  const given = blocks.map(({ block }) => block.hash);
  if (lineage !== undefined) refuted(says, lineage);
  else if (
    areAll &&
    blocks.every((one, index) => one.isProven && (index === 0 || isChild(blocks[index - 1], one)))
  )
    proven(says, 'each names the one before it as its parent', { given });
  else claimed(says, `blocks between them are not in the file; ${THE_FILE}`, { isMinor: true });
  return { blocks, statements: [...made, ...transactions.made] };
}

/** The header, or the reason why it cannot be the block's. */
function headerOf({
  header,
  hash,
  number,
}: EvidenceBlock): Pick<CheckedBlock, 'header' | 'isProven'> | string {
  if (typeof header !== 'string') return { header: header.claimed, isProven: false };
  if (keccak256(header) !== hash) return 'its header has another hash';
  try {
    const read = decodeHeader(header);
    return read.number === number
      ? { header: read, isProven: true }
      : `its header is of block ${read.number}`;
  } catch {
    return 'its header cannot be read';
  }
}

function problemOf(part: EvidenceBlock['header'] | EvidenceBlock['receiptsTrie']): string {
  return typeof part === 'object' && 'problem' in part ? part.problem : '';
}

function isChild(parent: CheckedBlock | undefined, child: CheckedBlock): boolean {
  return parent !== undefined && child.header.parentHash === parent.block.hash;
}

/** Why the blocks cannot be of one chain. */
function lineageProblem(blocks: readonly CheckedBlock[]): string | undefined {
  for (const [index, later] of blocks.slice(1).entries()) {
    const earlier = blocks[index];
    if (earlier === undefined) continue;
    const { number } = later.block;
    if (number === earlier.block.number + 1 && !isChild(earlier, later))
      return `the parent of block ${number} is another block than the block ${number - 1} listed`;
    if (later.header.timestamp < earlier.header.timestamp)
      return `block ${number} is older than an earlier one`;
  }
  return undefined;
}

function transactionsOf(
  { chainId }: EvidenceFile,
  { block, header, isProven }: CheckedBlock,
  { proven, claimed, refuted }: Statements,
): CheckedTransaction[] {
  const { receiptsTrie, transactionsTrie } = block;
  const receipts = readListed(receiptsTrie, header.receiptsRoot);
  const signed = readListed(transactionsTrie, header.transactionsRoot);
  const checked: CheckedTransaction[] = [];
  for (const [index, { hash, position }] of block.transactions.entries()) {
    const receipt = receipts(index, position);
    const logs = receipt === undefined ? undefined : orUndefined(() => decodeReceiptLogs(receipt));
    const encoded = signed(index, position);
    const transaction = encoded === undefined ? undefined : orUndefined(() => signedIn(encoded));
    const isListed = isProven && 'nodes' in transactionsTrie;
    const hasProvenLogs = isProven && logs !== undefined && 'nodes' in receiptsTrie;
    const says = `Transaction ${hash} is transaction ${position} of block ${block.number}`;
    const signer = (from: string) => `, and ${from} signed it for chain ${chainId}.`;
    const given = [block.hash];
    let sender: string | undefined;
    if ('nodes' in transactionsTrie && encoded === undefined)
      refuted(`${says}.`, 'its Merkle proof does not lead to it');
    else if (encoded !== undefined && keccak256(encoded) !== hash)
      refuted(`${says}.`, 'another one is there');
    else if (transaction === undefined)
      claimed(
        `${says}.`,
        `${problemOf(transactionsTrie) || 'it is of a kind that cannot be read'}; ${THE_FILE}`,
      );
    else if (transaction.chainId !== 0n && transaction.chainId !== BigInt(chainId))
      refuted(`${says}${signer(transaction.from)}`, `it was signed for chain ${transaction.chainId}`);
    else if (isListed) {
      sender = transaction.from;
      const because = 'a Merkle proof leads to it from the hash of the block';
      if (transaction.chainId === 0n) proven(`${says}, and ${sender} signed it.`, because, { given });
      else proven(`${says}${signer(sender)}`, because, { given });
    } else claimed(`${says}${signer(transaction.from)}`, THE_FILE);
    checked.push({ hash, position, logs, hasProvenLogs, sender });
  }
  return checked;
}

/** Reads values of a block's trie by their places in the file and in the block. */
function readListed(
  trie: EvidenceBlock['receiptsTrie'],
  root: string,
): (index: number, position: number) => string | undefined {
  if (!('nodes' in trie)) return (index) => trie.claimed[index] ?? undefined;
  const read = openTrie(root, trie.nodes);
  return (_index, position) => {
    const value = read(keyAt(position));
    return value === '0x' ? undefined : value;
  };
}

function signedIn(encoded: string): { from: string; chainId: bigint } | undefined {
  const { from, chainId } = Transaction.from(encoded);
  return from === null ? undefined : { from, chainId };
}

/**
 * Compares the events that the file lists with the receipts: each must be in one, and each event of the
 * token in a receipt must be listed, in the order of the chain.
 *
 * @returns `areAll`: whether this is so.
 */
export function checkEvents(
  file: EvidenceFile,
  blocks: readonly CheckedBlock[],
): { events: CheckedEvent[]; areAll: boolean; statements: Statement[] } {
  const { made, proven, claimed, refuted } = createStatements('events');
  const inReceipts = blocks.flatMap((block) => eventsIn(file, block));
  const byPlace = new Map(inReceipts.map((found) => [placeOf(found.event), found]));
  const events: CheckedEvent[] = [];
  const places: string[] = [];
  for (const listed of file.events) {
    const place = placeOf(listed);
    const found = byPlace.get(place);
    const isSame = found !== undefined && JSON.stringify(found.event) === JSON.stringify(listed);
    const { transactionIndex, blockNumber } = found?.checked ?? {};
    const transaction = found ? `${transactionIndex} of block ${blockNumber}` : listed.transactionHash;
    const where = `log ${listed.logIndex} of transaction ${transaction}`;
    if (!isSame) {
      const because = found
        ? 'the receipt has another log there'
        : 'no receipt has an event of the token there';
      refuted(`The contract ${listed.address} logged ${listed.topics[0] ?? 'something'}: ${where}.`, because);
      continue;
    }
    places.push(place);
    events.push(found.checked);
    const says = `${eventInWords(found.checked)} (${where}).`;
    if (found.checked.isProven)
      proven(says, 'a Merkle proof leads to it from the hash of the block', { given: [listed.blockHash] });
    else claimed(says, `${problemIn(file, listed.blockHash)}; ${THE_FILE}`);
  }
  const areAll =
    places.length === file.events.length && JSON.stringify(places) === JSON.stringify([...byPlace.keys()]);
  const areProven =
    blocks.length === file.blocks.length &&
    blocks.every(({ transactions }) => transactions.every(({ hasProvenLogs }) => hasProvenLogs));
  const says = 'The events listed are all that the receipts in the file have of the token, in their order.';
  const given = blocks.map(({ block }) => block.hash);
  if (!areAll) refuted(says, 'the receipts have others, or another order');
  else if (areProven) proven(says, 'the receipts have no others', { given });
  else claimed(says, `some receipts are not proven; ${THE_FILE}`);
  return { events, areAll, statements: made };
}

function placeOf({ transactionHash, logIndex, blockHash }: EvidenceEvent): string {
  return `${blockHash}:${transactionHash}:${logIndex}`;
}

function problemIn({ blocks }: EvidenceFile, hash: string): string {
  const block = blocks.find((one) => one.hash === hash);
  return (block && (problemOf(block.header) || problemOf(block.receiptsTrie))) || 'it is not proven';
}

interface FoundEvent {
  event: EvidenceEvent;
  checked: CheckedEvent;
}

/** The events of the token, and of its registry, in the receipts of a block, in chain order. */
function eventsIn(file: EvidenceFile, { block, header, transactions }: CheckedBlock): FoundEvent[] {
  const { registry, contracts, tokenId } = file;
  const { titleEscrowFactory, titleEscrowImplementation } = contracts;
  const emitters = { registry, titleEscrowFactory, titleEscrowImplementation };
  return transactions.flatMap(({ hash, position, logs = [], hasProvenLogs, sender }) =>
    logs.flatMap((log, logIndex): FoundEvent[] => {
      const event = { blockHash: block.hash, transactionHash: hash, logIndex, ...log };
      const place = { blockNumber: block.number, transactionIndex: position, index: logIndex };
      const decoded = decodeLog({ ...event, ...place }, emitters);
      if (decoded === undefined || (decoded.tokenId ?? BigInt(`0x${tokenId}`)) !== BigInt(`0x${tokenId}`))
        return [];
      const checked = { ...decoded, timestamp: header.timestamp, isProven: hasProvenLogs, sender };
      return [{ event, checked }];
    }),
  );
}

/** A sentence about an event, as the contracts' event has it. */
function eventInWords({ type, payload, address, timestamp }: CheckedEvent): string {
  const named = Object.entries(payload).filter(([name, value]) => name !== 'remark' && value !== '');
  const values = named.map(([name, value]) => `${name} ${String(value)}`).join(', ');
  return `At ${timeOf(timestamp)} the contract ${address} logged ${type}${values && `: ${values}`}`;
}

/** A block's time, given in seconds, as ISO 8601 in UTC. A header may have any number. */
export function timeOf(seconds: number): string {
  const time = new Date(seconds * 1_000);
  return Number.isNaN(time.getTime()) ? `second ${seconds}` : time.toISOString().replace('.000Z', 'Z');
}
