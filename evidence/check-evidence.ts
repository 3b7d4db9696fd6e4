import { checkBlocks, checkEvents, timeOf } from './check-chain';
import { checkDeliveries, checkDocument } from './check-document';
import { checkHistory, type CheckedOperation } from './check-history';
import { checkContracts, checkStates } from './check-state';
import type { DocumentLoader } from '../service/issuance/document-loader';
import type { EvidenceFile } from '../service/evidence/evidence-file';
import { THE_FILE, TOPICS, type Statement, type Status } from './statements';

/** A node's answer about the blocks of a file. */
export interface NodeAnswer {
  /** The node, without the secrets of its URL. */
  node: string;
  /** The hashes of blocks by their numbers. Undefined: the node does not have the block. */
  hashes: ReadonlyMap<number, string | undefined>;
  /** Why the node did not answer. */
  problem?: string;
}

/** A block's hash, which everything about the chain is proven with. */
export interface GivenBlock {
  number: number;
  hash: string;
  time: string;
  status: Status;
  /** The ones who say that the chain has it. */
  because: string;
}

/** The statements of a file. */
export interface EvidenceReport {
  /** `valid`: nothing is refuted, everything that can be is proven, and a node confirmed the hashes. */
  outcome: 'valid' | 'invalid' | 'could not tell';
  /** The condition of everything else: the first line of any report. */
  condition: string;
  given: GivenBlock[];
  statements: Statement[];
  operations: CheckedOperation[];
}

/**
 * Checks evidence with nothing but the file, and with the answers of nodes about the hashes of its blocks
 * if there are any.
 *
 * @param knownContexts the contexts that this program has.
 */
export async function checkEvidence(
  file: EvidenceFile,
  knownContexts: DocumentLoader,
  answers: readonly NodeAnswer[],
): Promise<EvidenceReport> {
  const { blocks, statements } = checkBlocks(file);
  const listed = checkEvents(file, blocks);
  const read = checkStates(file, blocks);
  const { operations, statements: history } = checkHistory(file, read.states, listed);
  const contracts = checkContracts(file, read.states, listed.events);
  const document = await checkDocument(file, knownContexts);
  const deliveries = checkDeliveries(file);
  const chain = [...statements, ...listed.statements, ...contracts, ...read.statements, ...history];
  const all = [...chain, ...document, ...deliveries];
  const times = new Map(blocks.map(({ block, header }) => [block.hash, timeOf(header.timestamp)]));
  const given = file.blocks.map(({ number, hash }) =>
    givenBlock(number, hash, times.get(hash) ?? '', answers),
  );
  const sorted = TOPICS.flatMap((topic) => all.filter((one) => one.topic === topic));
  return {
    outcome: outcomeOf(given, sorted, answers),
    condition: conditionOf(given, answers),
    given,
    statements: sorted,
    operations,
  };
}

function givenBlock(number: number, hash: string, time: string, answers: readonly NodeAnswer[]): GivenBlock {
  const other = answers.find(({ hashes }) => (hashes.get(number) ?? hash) !== hash);
  if (other) {
    const because =
      `the node ${other.node} has another block ${number}: ${other.hashes.get(number)}. ` +
      'Either it is a node of another chain, or the chain of this file is';
    return { number, hash, time, status: 'refuted', because };
  }
  const confirming = answers.filter(({ hashes }) => hashes.get(number) === hash).map(({ node }) => node);
  const because = confirming.length > 0 ? `also by the node ${confirming.join(' and the node ')}` : THE_FILE;
  return { number, hash, time, status: 'claimed', because };
}

function isConfirmed(given: readonly GivenBlock[], answers: readonly NodeAnswer[]): boolean {
  return (
    answers.length > 0 &&
    given.every(({ number, hash }) => answers.every(({ hashes }) => hashes.get(number) === hash))
  );
}

function conditionOf(given: readonly GivenBlock[], answers: readonly NodeAnswer[]): string {
  const hashes = given.length === 1 ? 'the hash of one block is' : `the hashes of ${given.length} blocks are`;
  const nodes = answers.map(({ node }) => node).join(' and ');
  if (given.some(({ status }) => status === 'refuted'))
    return 'REFUTED: a node has other blocks. Nothing below is shown of its chain.';
  if (isConfirmed(given, answers))
    return `PROVEN below means: proven if ${hashes} of the chain. ${nodes} said so when asked.`;
  const problems = answers.flatMap(({ node, problem }) =>
    problem === undefined ? [] : `${node}: ${problem}`,
  );
  const asked =
    answers.length === 0
      ? 'no node was asked'
      : `${nodes} did not confirm all of them${problems.length > 0 ? ` (${problems.join('; ')})` : ''}`;
  return (
    `PROVEN below means: proven if ${hashes} of the chain. This is only claimed here: ${asked}. ` +
    'Anybody can invent a chain.'
  );
}

function outcomeOf(
  given: readonly GivenBlock[],
  statements: readonly Statement[],
  answers: readonly NodeAnswer[],
): EvidenceReport['outcome'] {
  if ([...given, ...statements].some(({ status }) => status === 'refuted')) return 'invalid';
  const isComplete = statements.every(({ status, isMinor }) => isMinor || status === 'proven');
  return isComplete && isConfirmed(given, answers) ? 'valid' : 'could not tell';
}
