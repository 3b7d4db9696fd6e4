import { setTimeout as sleep } from 'node:timers/promises';
import { JsonRpcProvider } from 'ethers';
import pMap from 'p-map';
import type { Logger } from '../base/logger';
import { ChainError } from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import type { Network } from './networks';
import {
  blockIn,
  checked,
  commonRefusal,
  contentOf,
  differenceBetween,
  differing,
  GET_BLOCK,
  GET_LOGS,
  GET_RECEIPT,
  GET_TRANSACTION,
  isDeepAlike,
  isNone,
  isNumber,
  largestGroup,
  missingHead,
  type Params,
} from './compare-answers';
import { isBlockAbsent, isParameterRefused, isRangeRefused } from './node-errors';
import { LATE_MS, MOST_BEHIND, type Node, type NodeReport, NodeStates, type Vote } from './node-states';
import { blockOf, type ChainBlock } from './read-chain';
import { blockReceiptsOf, GET_BLOCK_RECEIPTS } from './read-receipts';
import { createChainCheck, createRpcClient, ethersOptionsOf, type RpcClient } from './rpc-client';

// Several nodes of one chain, as one client. No single node is believed: an answer counts when two nodes give
// it. A third is asked only about a difference. docs/decisions/0017-no-single-node-is-believed.md

/** The nodes of a chain. */
export interface ConnectedNodes {
  client: RpcClient;
  /** Rejects if a node is of another chain, or none answers. */
  checkChain: () => Promise<void>;
  /** The states of the nodes; undefined if there is only one. */
  report: () => NodeReport[] | undefined;
}

/** Connects to the nodes of a chain. With one URL, this is `createRpcClient` and nothing else. */
export function connectNodes(
  urls: readonly string[],
  network: Network,
  use: 'single' | 'bulk' = 'single',
  logger?: Logger,
): ConnectedNodes {
  const [url = ''] = urls;
  if (urls.length < 2) {
    const client = createRpcClient(url, network, use);
    return { client, checkChain: createChainCheck(client, url, network), report: () => undefined };
  }
  const nodes = urls.map((one) => ({ name: printableUrl(one), client: createRpcClient(one, network, use) }));
  return connectClients(nodes, network, logger);
}

/** Connects to two nodes or more by their clients. */
export function connectClients(nodes: readonly Node[], network: Network, logger?: Logger): ConnectedNodes {
  const states = new NodeStates(nodes, network, logger);
  let isChecked = false;
  return {
    client: new SeveralNodesClient(states, network),
    async checkChain() {
      if (!isChecked) await states.checkChains();
      isChecked = true;
    },
    report: () => states.report(),
  };
}

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

/** Readings of the same that may differ before the difference is an error. */
const READINGS = 4;
const PAUSE_MS = 500;
/** After two nodes have given their newest block or a count, the others have this long. */
const GRACE_MS = 500;
/** Two nodes have a common block at most this many blocks below their heads. */
const MOST_FORKED = 16;
/** Answers that are compared at the same time. */
const CONCURRENT_CALLS = 8;
/** How long the agreed head stands for the chain, and an unconfirmed answer for its node. */
const HEAD_MS = 1_000;
const UNCONFIRMED_MS = 60_000;
/** More than any network's confirmations. */
const MOST_HEADERS = 128;
/** Before nodes that may be behind are compared again, although nobody asks for the head. */
const COMPARE_AGAIN_MS = 5_000;

class SeveralNodesClient extends JsonRpcProvider implements RpcClient {
  /** The same nodes. An answer counts only if all that are not away give it. */
  readonly unanimous: RpcClient;
  /** Headers that two nodes gave, by hash, the oldest first. A hash commits to its header. */
  readonly #headers = new Map<string, { block: ChainBlock; raw: unknown }>();
  #head: { block: ChainBlock; at: number } | undefined;
  /** Answers of one node that another one is to confirm. */
  readonly #unconfirmed = new Map<string, { vote: Vote; at: number }>();
  #comparing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly states: NodeStates,
    network: Network,
    private readonly quorum: 'two' | 'all' = 'two',
  ) {
    const options = ethersOptionsOf(network);
    super(undefined, options.staticNetwork, options);
    this.unanimous = quorum === 'all' ? this : new SeveralNodesClient(states, network, 'all');
  }

  override send(method: string, params: Params): Promise<unknown> {
    const [first, second] = params;
    if (method === 'eth_sendRawTransaction') return this.#sendToAll(String(first));
    if (method === 'eth_blockNumber')
      return this.#agreeOnTag('latest').then((found) => found && hex(found.block.number));
    if (method === GET_BLOCK && !isNumber(first))
      return this.#agreeOnTag(String(first)).then((found) => found?.raw ?? null);
    if (method === 'eth_getTransactionCount' && !isNumber(second)) return this.#count(params);
    if (ESTIMATES.includes(method))
      return this.#firstVote(method, params).then((vote) => valueOf(vote, method));
    return this.#agreeOn(method, params);
  }

  async sendBatches(method: string, params: readonly Params[]): Promise<unknown[]> {
    const nodes = await this.states.usable();
    const given = params.map((one) => this.#takeUnconfirmed(method, one, nodes));
    const pair = nodes.slice(0, 2);
    // Each call goes to two nodes. One that another node answered before goes to one.
    const asked = pair.map((node, place) =>
      params.flatMap((_, index) => {
        const [{ node: earlier } = { node: undefined }] = given[index] ?? [];
        const isFirst = place === 0 || earlier === pair[0];
        return earlier === node || (earlier !== undefined && !isFirst) ? [] : index;
      }),
    );
    const votes = await Promise.all(
      pair.map((node, place) =>
        this.#askTogether(
          node,
          method,
          (asked[place] ?? []).map((at) => params[at] ?? []),
        ),
      ),
    );
    return pMap(
      params,
      (one, index) => {
        const own = votes.flatMap((ofNode, place) => ofNode[asked[place]?.indexOf(index) ?? -1] ?? []);
        return this.#agreeOn(method, one, [...(given[index] ?? []), ...own]);
      },
      { concurrency: CONCURRENT_CALLS },
    );
  }

  /**
   * Asks one node only. The next time that the same question is asked, another node must confirm the answer.
   */
  async sendUnconfirmed(method: string, params: Params): Promise<unknown> {
    const vote = await this.#firstVote(method, params);
    if (vote?.kind === 'value') this.#unconfirmed.set(keyOf(method, params), { vote, at: performance.now() });
    return valueOf(vote, method);
  }

  /** Calls the listener when a node reports a block, and when a node goes away or comes back. */
  onNewHead(listener: () => void): () => void {
    const ends = this.states.nodes.map(({ client }) => client.onNewHead?.(listener));
    const end = this.states.onChange(listener);
    return () => [...ends, end].forEach((one) => one?.());
  }

  override destroy(): void {
    clearTimeout(this.#comparing);
    this.states.close();
    if (this.quorum === 'two') this.unanimous.destroy();
    super.destroy();
  }

  /** The answer that two nodes give, or all that are not away. */
  async #agreeOn(method: string, params: Params, earlier: readonly Vote[] = []): Promise<unknown> {
    const linked = method === GET_BLOCK && earlier.length === 0 ? this.#linkedTo(method, params) : undefined;
    if (linked !== undefined) return linked;
    let problem: Error | undefined;
    let given = earlier;
    for (let reading = 1; reading <= READINGS; reading++) {
      const nodes = await this.states.usable();
      if (given.length === 0) given = this.#takeUnconfirmed(method, params, nodes);
      const [only] = nodes;
      if (only !== undefined && nodes.length === 1) {
        const vote = await this.#askTheOnlyOne(only, method, params);
        // It went away meanwhile, and another one may be back.
        if (!this.states.isUp(only) && reading < READINGS) continue;
        return valueOf(vote, method);
      }
      const votes = await this.#gather(nodes, method, params, this.#wanted(method, nodes.length), given);
      const alike = this.#alike(method, votes, nodes.length);
      if (alike !== undefined) {
        this.#noteOddOnes(method, params, alike, votes);
        return this.#remember(method, valueOf(alike[0], method));
      }
      given = [];
      const answers = votes.filter(({ kind }) => kind !== 'failure');
      // Nodes went away meanwhile: those that are left are asked.
      if (answers.length < 2) continue;
      const refused = answers.find((vote) => vote.kind === 'refusal' && isRangeRefused(vote.error));
      if (refused !== undefined) return valueOf(refused, method);
      if (MAY_BE_NEW.includes(method) && answers.some((vote) => isNone(vote))) return null;
      problem = differing(method, params, answers);
      if (reading < READINGS) await sleep(PAUSE_MS);
    }
    throw problem ?? new ChainError('RPC_UNREACHABLE', 'The nodes come and go.', { retryable: true });
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
  async #askTheOnlyOne(node: Node, method: string, params: Params): Promise<Vote | undefined> {
    const vote = await this.#askOne(node, method, params);
    if (method !== GET_LOGS || vote?.kind !== 'value') return vote;
    const again = await this.#askOne(node, method, params);
    if (again?.kind !== 'value' || contentOf(method, vote) === contentOf(method, again)) return again;
    throw differing(method, params, [vote, again]);
  }

  #noteOddOnes(method: string, params: Params, alike: readonly Vote[], votes: readonly Vote[]): void {
    const [right] = alike;
    for (const vote of votes) {
      // A node that is a block behind does not know the block.
      if (vote.kind !== 'value' || alike.includes(vote) || isNone(vote) || right?.kind !== 'value') continue;
      if (method === 'eth_call' && !isNumber(params[1])) continue;
      this.states.noteDifference(vote.node, blockIn(params), differenceBetween(method, vote, right));
    }
  }

  /** Asks one node several questions. Undefined answers: they are asked one by one. */
  async #askTogether(node: Node, method: string, params: readonly Params[]): Promise<Vote[]> {
    if (params.length < 2 || !('sendBatches' in node.client)) {
      const each = await pMap(params, (one) => this.#askOne(node, method, one), {
        concurrency: CONCURRENT_CALLS,
      });
      return each.map((vote) => vote ?? { node, kind: 'failure', error: undefined });
    }
    const ask = (client: RpcClient): Promise<unknown> =>
      client.sendBatches?.(method, params) ?? Promise.reject(new Error('no batches'));
    const [vote] = await this.#gatherWith([node], ask, { isLong: true, wanted: (votes) => 1 - votes.length });
    if (vote?.kind !== 'value' || !Array.isArray(vote.value)) return [];
    return vote.value.map((value: unknown): Vote => ({ node, kind: 'value', value }));
  }

  /**
   * The block of a tag, as `latest` or `finalized`, is the highest one that two nodes have under it.
   * Undefined if a node has none under another tag than `latest`, and no two have one.
   *
   * @throws the refusal of two nodes that do not know the tag.
   */
  async #agreeOnTag(tag: string): Promise<{ block: ChainBlock; raw: unknown } | undefined> {
    for (let reading = 1; ; reading++) {
      const nodes = await this.states.usable();
      const params: Params = [tag, false];
      // After the first difference, a slow node is waited for too: it may decide, or have a higher block.
      const wanted = enough(reading === 1 ? 2 : nodes.length);
      const votes = await this.#gather(nodes, GET_BLOCK, params, wanted, [], GRACE_MS);
      const heads = votes.flatMap((vote) => headIn(vote) ?? []);
      const common = heads.length < 2 ? undefined : await this.#highestOfTwo(heads);
      const isComplete = votes.length === nodes.length || reading > 1;
      const agreed = common && (isComplete || isNear(common.block, heads)) ? common : undefined;
      if (tag === 'latest') this.#noteHeads(heads, agreed);
      if (agreed !== undefined) return agreed;
      const [only] = heads;
      if (nodes.length === 1 && only !== undefined) return { block: only.block, raw: only.raw };
      const answers = votes.filter(({ kind }) => kind !== 'failure');
      if (tag !== 'latest' && isComplete && heads.length < 2) {
        const refusals = answers.filter(isTagRefused);
        if (refusals.length >= Math.min(2, nodes.length)) valueOf(refusals[0], GET_BLOCK);
        if (answers.some(hasNoBlock)) return undefined;
      }
      if (reading === READINGS || (nodes.length === 1 && answers.length > 0)) {
        if (answers.length === 0) valueOf(votes.at(-1), GET_BLOCK);
        const areAlike = new Set(answers.map(isTagRefused)).size === 1;
        if (areAlike && answers.every(({ kind }) => kind === 'refusal')) valueOf(answers[0], GET_BLOCK);
        throw answers.length > 1 ? differing(GET_BLOCK, params, answers) : missingHead();
      }
      if (isComplete && answers.length > 1) await sleep(PAUSE_MS);
    }
  }

  #noteHeads(heads: readonly Head[], agreed: { block: ChainBlock; raw: unknown } | undefined): void {
    this.states.noteHeads(
      heads.map(({ vote: { node }, block: { number } }) => ({ node, number })),
      agreed?.block.number,
    );
    this.#compareAgain();
    if (agreed === undefined) return;
    this.#head = { block: agreed.block, at: performance.now() };
    this.#keepHeader(agreed.block, agreed.raw);
  }

  /** The highest block that two of the nodes have. */
  async #highestOfTwo(heads: readonly Head[]): Promise<{ block: ChainBlock; raw: unknown } | undefined> {
    const falling = [...heads].sort((one, other) => other.block.number - one.block.number);
    for (const [place, lower] of falling.entries())
      for (const higher of falling.slice(0, place)) {
        if (isDeepAlike(lower.block, higher.block)) return lower;
        if (lower.block.number === higher.block.number) continue;
        const there = await this.#blockOf(higher.vote.node, lower.block.number);
        if (there && isDeepAlike(lower.block, there.block)) return lower;
      }
    // They are on different branches.
    const [, second] = falling;
    const top = second?.block.number ?? 0;
    for (let number = top - 1; number >= Math.max(top - MOST_FORKED, 0); number--) {
      const there = await Promise.all(falling.map(({ vote }) => this.#blockOf(vote.node, number)));
      const blocks = there.flatMap((one) => one ?? []);
      const common = blocks.find((one, place) =>
        blocks.slice(0, place).some((other) => isDeepAlike(one.block, other.block)),
      );
      if (common) return common;
    }
    return undefined;
  }

  async #blockOf(node: Node, number: number): Promise<{ block: ChainBlock; raw: unknown } | undefined> {
    const vote = await this.#askOne(node, GET_BLOCK, [hex(number), false]);
    const head = vote && headIn(vote);
    return head?.block.number === number ? head : undefined;
  }

  /** Looks at the heads again soon if a node may be behind, so that it is left out in time. */
  #compareAgain(): void {
    if (!this.states.isAnyBehind || this.#comparing !== undefined) return;
    this.#comparing = setTimeout(() => {
      this.#comparing = undefined;
      this.#agreeOnTag('latest').catch(() => undefined);
    }, COMPARE_AGAIN_MS);
    this.#comparing.unref?.();
  }

  /** The wallet's transactions that two nodes count. A single node cannot make the count higher. */
  async #count(params: Params): Promise<unknown> {
    const method = 'eth_getTransactionCount';
    for (let reading = 1; ; reading++) {
      const nodes = await this.states.usable();
      const votes = await this.#gather(nodes, method, params, enough(2), [], GRACE_MS);
      const counts = votes
        .flatMap((vote) => (vote.kind === 'value' ? Number(vote.value) : []))
        .sort((one, other) => other - one);
      const believed = counts[1] ?? (nodes.length === 1 ? counts[0] : undefined);
      if (believed !== undefined) return hex(believed);
      if (reading === READINGS || votes.every(({ kind }) => kind === 'refusal'))
        return valueOf(votes.at(-1), method);
    }
  }

  /** The first answer, from the most trustworthy node that gives one. */
  async #firstVote(method: string, params: Params): Promise<Vote | undefined> {
    for (let reading = 1; ; reading++) {
      const votes = await this.#gather(await this.states.usable(), method, params, (all) =>
        all.some(({ kind }) => kind === 'value') ? 0 : 1,
      );
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
    for (const { client } of this.states.nodes.filter((node) => !nodes.includes(node)))
      client.send(method, [raw]).catch(() => undefined);
    const isDone = (votes: readonly Vote[]): boolean => votes.some(({ kind }) => kind === 'value');
    const votes = await this.#gather(
      nodes,
      method,
      [raw],
      (all) => (isDone(all) ? 0 : nodes.length),
      [],
      0,
      true,
    );
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
  #linkedTo(method: string, [number]: Params): unknown {
    if (this.quorum === 'all' || !isNumber(number) || this.#unconfirmed.has(keyOf(method, [number, false])))
      return undefined;
    if (this.#head === undefined || performance.now() - this.#head.at >= HEAD_MS) return undefined;
    let found = this.#headers.get(this.#head.block.hash);
    while (found !== undefined && found.block.number > Number(number))
      found = this.#headers.get(found.block.parentHash);
    return found?.block.number === Number(number) ? found.raw : undefined;
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
  #takeUnconfirmed(method: string, params: Params, nodes: readonly Node[]): Vote[] {
    const key = keyOf(method, params);
    const { vote, at } = this.#unconfirmed.get(key) ?? { vote: undefined, at: 0 };
    this.#unconfirmed.delete(key);
    const isUsable = vote !== undefined && performance.now() - at < UNCONFIRMED_MS;
    return isUsable && nodes.length > 1 && nodes.includes(vote.node) ? [vote] : [];
  }

  async #askOne(node: Node, method: string, params: Params): Promise<Vote | undefined> {
    return (await this.#gather([node], method, params, (votes) => 1 - votes.length)).at(0);
  }

  #gather(
    nodes: readonly Node[],
    method: string,
    params: Params,
    wanted: (votes: readonly Vote[]) => number,
    given: readonly Vote[] = [],
    graceMs = 0,
    isLong = method === GET_LOGS || method === GET_BLOCK_RECEIPTS,
  ): Promise<Vote[]> {
    const ask = (client: RpcClient): Promise<unknown> =>
      method === GET_BLOCK_RECEIPTS
        ? blockReceiptsOf(client, String(params[0]), (receipts) => receipts)
        : client.send(method, [...params]);
    return this.#gatherWith(nodes, ask, { isLong, wanted, given, graceMs, method });
  }

  /**
   * Asks nodes one after the other until there are enough answers, or none is left. As many are asked at the
   * same time as answers are wanted. A node that is late is waited for, but another one is asked too.
   *
   * @param options.graceMs how long to wait for more after enough answers came in.
   */
  #gatherWith(
    nodes: readonly Node[],
    ask: (client: RpcClient) => Promise<unknown>,
    options: {
      wanted: (votes: readonly Vote[]) => number;
      isLong: boolean;
      given?: readonly Vote[];
      graceMs?: number;
      method?: string;
    },
  ): Promise<Vote[]> {
    const { wanted, isLong, given = [], graceMs = 0, method = '' } = options;
    return new Promise((resolve) => {
      const votes = [...given];
      const left = nodes.filter((node) => given.every((vote) => vote.node !== node));
      const open = new Set<Node>();
      const late = new Set<Node>();
      let grace: ReturnType<typeof setTimeout> | undefined;
      const end = (): void => {
        clearTimeout(grace);
        resolve(votes);
      };
      const look = (): void => {
        const more = wanted(votes);
        if (more > 0 || graceMs > 0)
          while (open.size - late.size < (graceMs > 0 ? Infinity : more)) {
            const next = left.shift();
            if (next === undefined) break;
            start(next);
          }
        if (open.size === 0 || (more <= 0 && graceMs === 0)) end();
        else if (more <= 0) grace ??= setTimeout(end, graceMs);
      };
      const start = (node: Node): void => {
        open.add(node);
        this.states.ask(node, ask, {
          isLong,
          onVote: (vote) => {
            if (!open.delete(node)) return;
            late.delete(node);
            votes.push(checked(method, vote));
            look();
          },
          onLate: (isGivenUp) => {
            if (!open.has(node)) return;
            if (isGivenUp) open.delete(node);
            if (isGivenUp) late.delete(node);
            else late.add(node);
            look();
          },
        });
      };
      look();
    });
  }
}

/** As many answers as there are nodes, but this many are enough after a moment. */
function enough(answers: number): (votes: readonly Vote[]) => number {
  return (votes) => answers - votes.filter(({ kind }) => kind === 'value').length;
}

function valueOf(vote: Vote | undefined, method: string): unknown {
  if (vote === undefined)
    throw new ChainError('RPC_UNREACHABLE', `No node answers ${method} in time.`, { retryable: true });
  if (vote.kind === 'value') return vote.value;
  throw vote.error;
}

/** The node's newest block, with its answer. */
interface Head {
  vote: Vote;
  block: ChainBlock;
  raw: unknown;
}

function headIn(vote: Vote): Head | undefined {
  if (vote.kind !== 'value') return undefined;
  const block = blockOf(vote.value);
  return block && { vote, block, raw: vote.value };
}

/** Whether no head is far above the block. */
function isNear({ number }: ChainBlock, heads: readonly Head[]): boolean {
  return heads.every(({ block }) => block.number <= number + MOST_BEHIND);
}

/** Whether a node knows a tag and has no block for it yet. */
function hasNoBlock(vote: Vote): boolean {
  return isNone(vote) || (vote.kind === 'refusal' && isBlockAbsent(vote.error));
}

/** Whether a node does not know a tag. */
function isTagRefused(vote: Vote): boolean {
  return vote.kind === 'refusal' && !hasNoBlock(vote) && isParameterRefused(vote.error);
}

function keyOf(method: string, params: Params): string {
  return `${method} ${JSON.stringify(params)}`;
}

function hex(number: number): string {
  return `0x${number.toString(16)}`;
}
