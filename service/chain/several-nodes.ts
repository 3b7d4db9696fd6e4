import { toQuantity } from 'ethers';
import pMap from 'p-map';
import { ChainError } from '../base/errors';
import { type Time, pause } from '../base/time';
import { agreeOnTag, hasNoBlock, type BlockAnswer, type Head } from './agree-on-tag';
import type { Chain, Reading } from './chain';
import {
  blockIn,
  commonRefusal,
  contentOf,
  differenceBetween,
  differing,
  GET_LOGS,
  GET_RECEIPT,
  GET_TRANSACTION,
  isNone,
  isNumber,
  largestGroup,
  READ,
  type Question,
} from './compare-answers';
import {
  askOne,
  CONCURRENT_CALLS,
  enough,
  gather,
  gatherTogether,
  GRACE_MS,
  PAUSE_MS,
  READINGS,
  valueOf,
} from './gather-votes';
import { nothingLearned, type Node, type Params, type Rpc } from './node';
import { isRangeRefused } from './node-errors';
import type { NodeStates, Vote } from './node-states';
import { LATE_MS } from './reach-node';
import { blockOf, GET_BLOCK, type ChainBlock } from './read-chain';
import { GET_BLOCK_RECEIPTS } from './read-receipts';

/** Questions to which nodes may give different right answers. The first that answers is believed. */
const ESTIMATES = [
  'eth_estimateGas',
  'eth_gasPrice',
  'eth_maxPriorityFeePerGas',
  'eth_feeHistory',
  'eth_getBalance',
  'eth_chainId',
];
/** A node that does not have a thing yet, or not at all, says that there is none: two nodes must have it. */
const MAY_BE_NEW = [GET_BLOCK, 'eth_getBlockByHash', GET_TRANSACTION, GET_RECEIPT, GET_BLOCK_RECEIPTS];

/** How long the agreed head stands for the chain, and an unconfirmed answer for its node. */
const HEAD_MS = 1_000;
const UNCONFIRMED_MS = 60_000;
/** More than any network's confirmations. */
const MOST_HEADERS = 128;
/** Before nodes that may be behind are compared again, although nobody asks for the head. */
const COMPARE_AGAIN_MS = 5_000;

/**
 * Several nodes of one chain. No single node is believed: an answer counts when two nodes give it. A third is
 * asked only about a difference. docs/decisions/0017-no-single-node-is-believed.md
 */
export class SeveralNodes implements Chain {
  readonly isOfSeveral = true;
  readonly unanimous: Chain;
  readonly time: Time;
  readonly learned = nothingLearned();
  /** Headers that two nodes gave, by hash, the oldest first. A hash commits to its header. */
  readonly #headers = new Map<string, BlockAnswer>();
  #head: { block: ChainBlock; at: number } | undefined;
  /** Answers of one node that another one is to confirm. */
  readonly #unconfirmed = new Map<string, { vote: Vote; at: number }>();
  #cancelComparing: (() => void) | undefined;

  constructor(
    private readonly states: NodeStates,
    private readonly quorum: 'two' | 'all' = 'two',
  ) {
    this.time = states.time;
    this.unanimous = quorum === 'all' ? this : new SeveralNodes(states, 'all');
  }

  send(method: string, params: Params): Promise<unknown> {
    const [first, second] = params;
    if (method === 'eth_sendRawTransaction') return this.#sendToAll(String(first));
    if (method === 'eth_blockNumber')
      return this.#agreeOnTag('latest').then((found) => found && toQuantity(found.block.number));
    if (method === GET_BLOCK && !isNumber(first))
      return this.#agreeOnTag(String(first)).then((found) => found?.raw ?? null);
    if (method === 'eth_getTransactionCount' && !isNumber(second)) return this.#count(params);
    if (ESTIMATES.includes(method))
      return this.#firstVote({ method, params }).then((vote) => valueOf(vote, method));
    return this.#agreeOn({ method, params });
  }

  async sendBatch(method: string, params: readonly Params[]): Promise<unknown[]> {
    const nodes = await this.states.usable();
    const questions = params.map((call) => ({ method, params: call }));
    const votesByCall = questions.map((question) => this.#takeUnconfirmed(question, nodes));
    const earlierNodes = votesByCall.map(([vote]) => vote?.node);
    const [first, second] = nodes;
    // Each call goes to two nodes. One that another node answered before goes to one.
    const isAsked = (node: Node, by: Node | undefined): boolean =>
      by !== node && (by === undefined || by === first || node !== second);
    const callsTo = (node: Node): number[] =>
      [...params.keys()].filter((index) => isAsked(node, earlierNodes[index]));
    const answers = await gatherTogether(this.states, nodes, method, (node) =>
      callsTo(node).map((index) => params[index] ?? []),
    );
    for (const [node, values] of answers)
      for (const [place, index] of callsTo(node).entries())
        votesByCall[index]?.push({ node, kind: 'value', value: values[place] });
    return pMap(questions, (question, index) => this.#agreeOn(question, votesByCall[index]), {
      concurrency: CONCURRENT_CALLS,
    });
  }

  async sendUnconfirmed(method: string, params: Params): Promise<unknown> {
    const question = { method, params };
    const vote = await this.#firstVote(question);
    const now = this.time.elapsed();
    for (const [key, { at }] of this.#unconfirmed)
      if (now - at >= UNCONFIRMED_MS) this.#unconfirmed.delete(key);
    if (vote?.kind === 'value') this.#unconfirmed.set(keyOf(question), { vote, at: now });
    return valueOf(vote, method);
  }

  async agree<T>(blocks: object, read: (node: Rpc) => Promise<Reading<T>>): Promise<T> {
    return ((await this.#agreeOn({ method: READ, params: [blocks], ask: read })) as Reading<T>).value;
  }

  /** Calls the listener also when a node goes away or comes back. */
  subscribe(listener: (head: unknown) => void): () => void {
    const ends = this.states.nodes.map((node) => node.subscribe(listener));
    const end = this.states.onChange(() => listener(undefined));
    return () => [...ends, end].forEach((stop) => stop());
  }

  close(): void {
    this.#cancelComparing?.();
    this.states.close();
    if (this.quorum === 'two') this.unanimous.close();
  }

  /** The answer that two nodes give, or all that are not away. */
  async #agreeOn(question: Question, earlier: readonly Vote[] = []): Promise<unknown> {
    const { method } = question;
    const linked = method === GET_BLOCK && earlier.length === 0 ? this.#linkedTo(question) : undefined;
    if (linked !== undefined) return linked;
    let problem: Error | undefined;
    let earlierVotes = earlier;
    for (let reading = 1; reading <= READINGS; reading++) {
      const nodes = await this.states.usable();
      if (earlierVotes.length === 0) earlierVotes = this.#takeUnconfirmed(question, nodes);
      const [only] = nodes;
      if (only !== undefined && nodes.length === 1) {
        const vote = await this.#askTheOnlyOne(only, question);
        // It went away meanwhile, and another one may be back.
        if (!this.states.isUp(only) && reading < READINGS) continue;
        return valueOf(vote, method);
      }
      const wanted = this.#wanted(method, nodes.length);
      const votes = await gather(this.states, nodes, question, { wanted, earlier: earlierVotes });
      const alike = this.#alike(method, votes, nodes.length);
      if (alike !== undefined) {
        this.#noteOddOnes(question, alike, votes);
        return this.#remember(method, valueOf(alike[0], method));
      }
      earlierVotes = [];
      const answers = votes.filter(({ kind }) => kind !== 'failure');
      // Nodes went away meanwhile: those that are left are asked.
      if (answers.length < 2) continue;
      const refused = answers.find((vote) => vote.kind === 'refusal' && isRangeRefused(vote.error));
      if (refused !== undefined && [READ, GET_LOGS].includes(method)) return valueOf(refused, method);
      if (MAY_BE_NEW.includes(method) && answers.some(hasNoBlock)) return null;
      problem = differing(question, answers);
      if (reading < READINGS) await pause(this.time, PAUSE_MS);
    }
    throw problem ?? new ChainError('RPC_UNREACHABLE', 'The nodes come and go.');
  }

  #wanted(method: string, nodes: number): (votes: readonly Vote[]) => number {
    if (this.quorum === 'all') return () => nodes;
    return (votes) => 2 - (largestGroup(method, votes)?.length ?? 0);
  }

  /** The votes for the answer that counts, if there is one. */
  #alike(method: string, votes: readonly Vote[], nodes: number): readonly Vote[] | undefined {
    const group = largestGroup(method, votes) ?? [];
    if (this.quorum === 'two') return group.length >= 2 ? group : undefined;
    const answers = votes.filter(({ kind }) => kind !== 'failure');
    // A node that went away meanwhile is left out, and another one is asked.
    return group.length === answers.length && votes.length === nodes && group.length > 0 ? group : undefined;
  }

  /** One node is left. It is asked for logs twice, as with one URL. */
  async #askTheOnlyOne(node: Node, question: Question): Promise<Vote | undefined> {
    const { method } = question;
    const vote = await askOne(this.states, node, question);
    if (![READ, GET_LOGS].includes(method) || vote?.kind !== 'value') return vote;
    const again = await askOne(this.states, node, question);
    if (again?.kind !== 'value' || contentOf(method, vote) === contentOf(method, again)) return again;
    throw differing(question, [vote, again]);
  }

  #noteOddOnes({ method, params }: Question, alike: readonly Vote[], votes: readonly Vote[]): void {
    const [right] = alike;
    for (const vote of votes) {
      // A node that is a block behind does not know the block.
      if (vote.kind !== 'value' || alike.includes(vote) || isNone(vote) || right?.kind !== 'value') continue;
      if (method === 'eth_call' && !isNumber(params[1])) continue;
      this.states.noteDifference(vote.node, blockIn(params), differenceBetween(method, vote, right));
    }
  }

  #agreeOnTag(tag: string): Promise<BlockAnswer | undefined> {
    return agreeOnTag(this.states, tag, (heads, agreed) => {
      if (tag === 'latest') this.#noteHeads(heads, agreed);
    });
  }

  #noteHeads(heads: readonly Head[], agreed: BlockAnswer | undefined): void {
    this.states.noteHeads(
      heads.map(({ vote: { node }, block: { number } }) => ({ node, number })),
      agreed?.block.number,
    );
    this.#compareAgain();
    if (agreed === undefined) return;
    this.#head = { block: agreed.block, at: this.time.elapsed() };
    this.#keepHeader(agreed.block, agreed.raw);
  }

  /** Looks at the heads again soon if a node may be behind, so that it is left out in time. */
  #compareAgain(): void {
    if (!this.states.isAnyBehind || this.#cancelComparing !== undefined) return;
    this.#cancelComparing = this.time.later(COMPARE_AGAIN_MS, () => {
      this.#cancelComparing = undefined;
      this.#agreeOnTag('latest').catch(() => undefined);
    });
  }

  /** The wallet's transactions that two nodes count. A single node cannot make the count higher. */
  async #count(params: Params): Promise<unknown> {
    const method = 'eth_getTransactionCount';
    for (let reading = 1; ; reading++) {
      const nodes = await this.states.usable();
      const wanted = enough(2);
      const votes = await gather(this.states, nodes, { method, params }, { wanted, graceMs: GRACE_MS });
      const counts = votes
        .flatMap((vote) => (vote.kind === 'value' ? Number(vote.value) : []))
        .sort((one, other) => other - one);
      const believed = counts[1] ?? (nodes.length === 1 ? counts[0] : undefined);
      if (believed !== undefined) return toQuantity(believed);
      if (reading === READINGS || votes.every(({ kind }) => kind === 'refusal'))
        return valueOf(votes.at(-1), method);
    }
  }

  /** The first answer, from the most trustworthy node that gives one. */
  async #firstVote(question: Question): Promise<Vote | undefined> {
    for (let reading = 1; ; reading++) {
      const votes = await gather(this.states, await this.states.usable(), question, {
        wanted: (all) => (all.some(({ kind }) => kind === 'value') ? 0 : 1),
      });
      const answer =
        votes.find(({ kind }) => kind === 'value') ?? votes.find(({ kind }) => kind === 'refusal');
      // The nodes that were asked went away meanwhile, and others may be back.
      if (answer !== undefined || reading === READINGS) return answer ?? votes.at(-1);
    }
  }

  /**
   * Gives a transaction to all nodes, also to those that are away. The first acceptance counts. A node that
   * did not answer may have it, so its failure outweighs the refusals of the others.
   */
  async #sendToAll(raw: string): Promise<unknown> {
    const method = 'eth_sendRawTransaction';
    const nodes = await this.states.usable();
    for (const node of this.states.nodes.filter((one) => !nodes.includes(one)))
      node.send(method, [raw]).catch(() => undefined);
    const isDone = (votes: readonly Vote[]): boolean => votes.some(({ kind }) => kind === 'value');
    const wanted = (all: readonly Vote[]): number => (isDone(all) ? 0 : nodes.length);
    const question = { method, params: [raw] };
    const votes = await gather(this.states, nodes, question, { wanted, isLong: true });
    const accepted = votes.find(({ kind }) => kind === 'value');
    const unknown = nodes.find((node) => votes.every((vote) => vote.node !== node));
    if (accepted === undefined && unknown !== undefined)
      throw new Error(
        `${unknown.name} did not answer within ${LATE_MS / 1_000} s: it may have the transaction`,
      );
    const refusals = votes.filter(({ kind }) => kind === 'refusal');
    return valueOf(accepted ?? commonRefusal(refusals) ?? votes.at(-1), method);
  }

  /** The block with this number, if its descendants up to the agreed head are known. */
  #linkedTo(question: Question): unknown {
    const [number] = question.params;
    if (this.quorum === 'all' || !isNumber(number) || this.#unconfirmed.has(keyOf(question)))
      return undefined;
    if (this.#head === undefined || this.time.elapsed() - this.#head.at >= HEAD_MS) return undefined;
    let header = this.#headers.get(this.#head.block.hash);
    while (header !== undefined && header.block.number > Number(number))
      header = this.#headers.get(header.block.parentHash);
    return header?.block.number === Number(number) ? header.raw : undefined;
  }

  #remember(method: string, value: unknown): unknown {
    if (method === GET_BLOCK && value !== null) this.#keepHeader(blockOf(value) as ChainBlock, value);
    return value;
  }

  #keepHeader(block: ChainBlock, raw: unknown): void {
    this.#headers.delete(block.hash);
    this.#headers.set(block.hash, { block, raw });
    for (const hash of this.#headers.keys()) {
      if (this.#headers.size <= MOST_HEADERS) break;
      this.#headers.delete(hash);
    }
  }

  /** The answer that one of the nodes gave before, unless it is alone now. */
  #takeUnconfirmed(question: Question, nodes: readonly Node[]): Vote[] {
    const key = keyOf(question);
    const { vote, at } = this.#unconfirmed.get(key) ?? { vote: undefined, at: 0 };
    this.#unconfirmed.delete(key);
    const isUsable = vote !== undefined && this.time.elapsed() - at < UNCONFIRMED_MS;
    return isUsable && nodes.length > 1 && nodes.includes(vote.node) ? [vote] : [];
  }
}

function keyOf({ method, params }: Question): string {
  return `${method} ${JSON.stringify(params)}`;
}
