import { ChainError, cut, messageOf } from '../base/errors';
import { malformed, classifyRefusal, isRangeRefused, isReverted } from './node-errors';
import type { Reading } from './chain';
import type { Node, Params } from './node';
import type { Vote } from './node-states';
import {
  blockOf,
  GET_BLOCK,
  nameLogs,
  parseLogs,
  type ChainBlock,
  type ChainLog,
  type TransactionInBlock,
} from './read-chain';
import { GET_BLOCK_RECEIPTS, logsOfReceipt } from './read-receipts';

// The common part of several nodes' answers, and the words for a difference.

export const GET_LOGS = 'eth_getLogs';
export const GET_TRANSACTION = 'eth_getTransactionByHash';
export const GET_RECEIPT = 'eth_getTransactionReceipt';
/** A question of several calls, which each node is asked in its own way. Its answer is a `Reading`. */
export const READ = 'logs';

/** A question to nodes. */
export interface Question {
  method: string;
  params: Params;
  /** Asks a node, if the question is not one call. */
  ask?: ((node: Node) => Promise<unknown>) | undefined;
}

/** A vote whose content can be read. An answer that cannot is a refusal. */
export function checked(method: string, vote: Vote): Vote {
  try {
    contentOf(method, vote);
    return vote;
  } catch (error) {
    return { node: vote.node, kind: 'refusal', error };
  }
}

/** The votes for the answer that most nodes give. */
export function largestGroup(method: string, votes: readonly Vote[]): readonly Vote[] | undefined {
  const groups = new Map<string, Vote[]>();
  for (const vote of votes) {
    if (vote.kind === 'failure') continue;
    const content = contentOf(method, vote);
    groups.set(content, [...(groups.get(content) ?? []), vote]);
  }
  return [...groups.values()].sort((one, other) => other.length - one.length)[0];
}

/**
 * The content of an answer, without the parts that node programs write differently: other fields, order and
 * spelling.
 */
export function contentOf(method: string, vote: Vote): string {
  if (vote.kind !== 'value') {
    const { error } = vote;
    if (isReverted(error)) return `reverted ${error.data}`;
    return isRangeRefused(error) ? 'range refused' : 'refused';
  }
  const { value } = vote;
  if (value === null) return 'none';
  const fields = value as Record<string, unknown>;
  switch (method) {
    case GET_BLOCK:
      return headerOf(value);
    case READ:
      return lower((value as Reading<unknown>).names);
    case 'eth_getBlockByHash':
      return `${headerOf(value)} ${lower(hashesOf(fields.transactions))}`;
    case 'eth_getProof':
      return lower([
        fields.accountProof,
        (fields.storageProof as { proof: unknown }[]).map(({ proof }) => proof),
      ]);
    case GET_LOGS:
      return logsText(parseLogs(method, value));
    case GET_RECEIPT:
      return receiptText(fields, method);
    case GET_BLOCK_RECEIPTS:
      return (value as Record<string, unknown>[]).map((receipt) => receiptText(receipt, method)).join('\n\n');
    case GET_TRANSACTION:
    case 'eth_getTransactionByBlockHashAndIndex':
      return [fields.hash, fields.from].map(lower).join(' ');
    case 'eth_getTransactionCount':
      return String(Number(value));
    default:
      return lower(value);
  }
}

/** A block has its transactions, or their hashes. */
function hashesOf(transactions: unknown): unknown {
  if (!Array.isArray(transactions)) return transactions;
  return transactions.map((one: unknown) => (one as { hash?: unknown } | null)?.hash ?? one);
}

function receiptText(receipt: Record<string, unknown>, method: string): string {
  const { transactionHash, blockHash, blockNumber, status, gasUsed } = receipt;
  const quantities = [blockNumber, status, gasUsed].map((quantity) => Number(quantity ?? NaN));
  const logs = logsOfReceipt(receipt, receipt as unknown as TransactionInBlock, method);
  return [lower([transactionHash, blockHash]), ...quantities, logsText(logs)].join(' ');
}

/** The logs in chain order. Their indexes are left out: some nodes count within the transaction. */
function logsText(logs: readonly ChainLog[]): string {
  return lower(nameLogs(logs).map(({ name }) => name));
}

function lower(value: unknown): string {
  return (JSON.stringify(value) ?? '').toLowerCase();
}

export function isNone(vote: Vote): boolean {
  return vote.kind === 'value' && vote.value === null;
}

/** The refusal that most nodes give. */
export function commonRefusal(refusals: readonly Vote[]): Vote | undefined {
  const kindOf = (vote: Vote): string => (vote.kind === 'value' ? '' : classifyRefusal(vote.error));
  const timesOf = (vote: Vote): number => refusals.filter((other) => kindOf(other) === kindOf(vote)).length;
  return [...refusals].sort((one, other) => timesOf(other) - timesOf(one))[0];
}

/** The error for nodes of which no two give the same answer. */
export function differing({ method, params }: Question, votes: readonly Vote[]): ChainError {
  const block = blockIn(params);
  const about = block === undefined ? '' : ` about block ${block}`;
  const answers = votes.map((vote) => `${vote.node.name}: ${inShort(method, vote)}`).join('; ');
  const message = `The nodes differ${about} (${method}). ${answers}. Nothing is read until two agree.`;
  const remedy = 'Add a third node to RPC_URL, or take the wrong one out.';
  return new ChainError('NODES_DIFFER', `${message} ${remedy}`, { remedy });
}

export function differenceBetween(method: string, vote: Vote, right: Vote): string {
  return `${method}: ${inShort(method, vote)} instead of ${inShort(method, right)}`;
}

/** A few words about an answer. They are from a node, so they are short. */
function inShort(method: string, vote: Vote): string {
  if (vote.kind !== 'value') return `refuses (${cut(messageOf(vote.error))})`;
  const { value } = vote;
  if (value === null) return 'has none';
  if (method === READ) return `${(value as Reading<unknown>).names.length} logs`;
  if (Array.isArray(value)) return `${value.length} ${method === GET_LOGS ? 'logs' : 'receipts'}`;
  const block = method.startsWith('eth_getBlock') ? blockOf(value) : undefined;
  return block ? `block ${block.number} ${block.hash.slice(0, 10)}` : cut(lower(value));
}

/** The block or the blocks that a question is about. */
export function blockIn(params: Params): string | undefined {
  const [first, second] = params;
  if (typeof first === 'object' && first !== null) {
    const { blockHash, fromBlock, toBlock } = first as Record<string, unknown>;
    if (typeof blockHash === 'string') return blockHash;
    if (isNumber(fromBlock) && isNumber(toBlock)) {
      const [from, to] = [Number(fromBlock), Number(toBlock)];
      return from === to ? String(from) : `${from} to ${to}`;
    }
  }
  const block = [first, second].find(isNumber);
  return typeof block === 'string' ? (block.length > 20 ? block : String(Number(block))) : undefined;
}

/** Whether a parameter names a block by its number, as opposed to a tag. */
export function isNumber(block: unknown): boolean {
  return typeof block === 'string' && block.startsWith('0x');
}

/** Whether two blocks are the same in all that is read of them. */
export function isDeepAlike(one: ChainBlock, other: ChainBlock): boolean {
  return headerText(one) === headerText(other);
}

function headerOf(value: unknown): string {
  const block = blockOf(value);
  if (block === undefined) throw malformed(GET_BLOCK);
  return headerText(block);
}

function headerText({ number, hash, parentHash, timestamp }: ChainBlock): string {
  return [number, hash, parentHash, timestamp].join(' ');
}
