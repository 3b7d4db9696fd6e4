import { isError } from 'ethers';
import type { Time } from '../base/time';
import { ChainError, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { untilAborted, within } from '../base/waiting';
import type { Network } from './networks';
import { isRangeRefused, isThrottled, nodeErrorOf, problemOf } from './node-errors';
import { type RpcClient, wrongChain } from './rpc-client';

// The states of several nodes of one chain. A node is away if it refuses connections, does not answer within
// three seconds, is of another chain, or is behind. A node that is away is not asked, except whether it is
// back.

/** The longest time of an answer. Queries for logs may take longer while the node answers others. */
export const LATE_MS = 3_000;
/** Pauses before a node that is away is asked whether it is back. */
const FIRST_PROBE_MS = 500;
const PROBE_EVERY_MS = 2_000;
/** A node that is more than this many blocks behind, for this long, is away. */
export const MOST_BEHIND = 3;
const BEHIND_MS = 15_000;
/** A head that did not change for this many usual block times may stand still. */
const STILL_BLOCKS = 5;
/** How long a node that was late, or gave another answer than two others, is asked last. */
const TROUBLED_MS = 60_000;
/** How long a difference is reported. */
const DIFFERENCE_SHOWN_MS = 600_000;

/** Why a node is left out before it was asked. */
export const NOT_ASKED = 'it was not asked yet';

/** A difference between the answer of a node and that of two others. */
export interface Difference {
  /** Epoch milliseconds. */
  at: number;
  /** Number or hash of the block, if the question was about one. */
  block: string | undefined;
  difference: string;
}

/** The state of a node, for health and metrics. */
export interface NodeReport {
  /** Without its secrets. */
  url: string;
  state: 'up' | 'away';
  /** Start of the state, in epoch milliseconds. */
  since: number;
  /** Why it is away. */
  reason: string | undefined;
  headBlock: number | undefined;
  /** The number of its answers that differed from those of two others. */
  differences: number;
  /** The last of them within ten minutes. */
  lastDifference: Difference | undefined;
}

/** One of several nodes. */
export interface Node {
  /** Its URL without its secrets. */
  readonly name: string;
  readonly client: RpcClient;
}

/** The answer of a node: a value, its refusal, or a failure to reach it. */
export type Vote = { node: Node } & (
  { kind: 'value'; value: unknown } | { kind: 'refusal' | 'failure'; error: unknown }
);

/** The knowledge of a node; at first there is none. */
class State {
  isUp = false;
  reason: string | undefined = NOT_ASKED;
  /** All times below are by `elapsed()`. */
  awaySince = -Infinity;
  /** When it came back last. A question from before says nothing about it now. */
  upSince = -Infinity;
  /** When the last question that failed was asked. */
  failedFrom = -Infinity;
  probing: Promise<void> | undefined;
  cancelProbe: () => void = () => undefined;
  head: number | undefined;
  headSince = 0;
  behindSince: number | undefined;
  isBehind = false;
  troubledAt = -Infinity;
  chainId: number | undefined;
  differences = 0;
  lastDifference: Difference | undefined;

  constructor(public since: number) {}
}

/** Tracks which of the nodes answer, and which of them are odd. */
export class NodeStates {
  readonly #states: Map<Node, State>;
  readonly #listeners = new Set<() => void>();
  /** When a single node was left, by `elapsed()`. Undefined: more or fewer are up. */
  #aloneSince: number | undefined;
  /** The block that a node which was behind must have come near to. */
  #best = 0;
  #isClosed = false;

  constructor(
    readonly nodes: readonly Node[],
    private readonly network: Network,
    readonly time: Time,
    private readonly logger?: Logger,
  ) {
    this.#states = new Map(nodes.map((node) => [node, new State(time.now())]));
  }

  report(): NodeReport[] {
    const now = this.time.now();
    return this.nodes.map((node) => {
      const { isUp, since, reason, head, differences, lastDifference } = this.#of(node);
      const isRecent = lastDifference !== undefined && now - lastDifference.at < DIFFERENCE_SHOWN_MS;
      return {
        url: node.name,
        state: isUp ? 'up' : 'away',
        since,
        reason: isUp ? undefined : reason,
        headBlock: head,
        differences,
        lastDifference: isRecent ? lastDifference : undefined,
      };
    });
  }

  /** Calls the listener whenever a node goes away or comes back, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * The nodes to ask, the most trustworthy first. A single one is returned only if all others have failed
   * since it was left alone: one of them may have come back unnoticed.
   *
   * @throws ChainError RPC_UNREACHABLE (retryable) if there is none.
   */
  async usable(): Promise<Node[]> {
    if (this.nodes.some((node) => this.#of(node).failedFrom === -Infinity && !this.isUp(node)))
      await this.#firstAnswers();
    if (this.up().length === 0) await this.#probeAll(this.nodes);
    while (this.#aloneSince !== undefined) {
      const aloneSince = this.#aloneSince;
      const unsure = this.nodes.filter((node) => {
        const { isUp, awaySince, failedFrom } = this.#of(node);
        return !isUp && awaySince !== aloneSince && failedFrom < aloneSince;
      });
      if (unsure.length === 0) break;
      await this.#probeAll(unsure);
    }
    const up = this.up();
    if (up.length > 0) return up;
    const reasons = this.nodes.map((node) => `${node.name}: ${this.#of(node).reason}`);
    throw new ChainError('RPC_UNREACHABLE', `No node of RPC_URL answers (${reasons.join('; ')}).`, {
      retryable: true,
    });
  }

  isUp(node: Node): boolean {
    return this.#of(node).isUp;
  }

  /**
   * Asks every node for its chain id.
   *
   * @throws ConfigurationError CHAIN_ID_MISMATCH if one is of another chain; ChainError RPC_UNREACHABLE
   *   (retryable) if none answers.
   */
  async checkChains(): Promise<void> {
    await this.#probeAll(this.nodes);
    for (const node of this.nodes) {
      const { chainId = this.network.chainId } = this.#of(node);
      if (chainId !== this.network.chainId) throw wrongChain(chainId, node.name, this.network);
    }
    await this.usable();
  }

  /**
   * Asks a node. `onVote` is called once. `onLate` is called if the answer takes longer than it may, and says
   * whether the question is given up: the node is away, or was away after it was asked.
   *
   * @param isLong whether the answer may take longer while the node answers others.
   */
  ask(
    node: Node,
    question: () => Promise<unknown>,
    {
      isLong,
      onVote,
      onLate,
    }: { isLong: boolean; onVote: (vote: Vote) => void; onLate: (isGivenUp: boolean) => void },
  ): void {
    const askedAt = this.time.elapsed();
    const cancel = this.time.later(LATE_MS, () => {
      const state = this.#of(node);
      state.troubledAt = this.time.elapsed();
      const mayAnswer = isLong && state.isUp && state.upSince <= askedAt;
      if (!isLong) this.#setAway(node, NO_ANSWER, askedAt);
      onLate(!mayAnswer);
      if (mayAnswer) void this.#probe(node).then(() => this.isUp(node) || onLate(true));
    });
    question()
      .then(
        (value): Vote => ({ node, kind: 'value', value }),
        (error: unknown): Vote => {
          if (!isFailure(error)) return { node, kind: 'refusal', error };
          this.#setAway(node, reasonOf(error), askedAt);
          return { node, kind: 'failure', error };
        },
      )
      .then((vote) => {
        cancel();
        onVote(vote);
      }, this.#unexpected);
  }

  readonly #unexpected = (error: unknown): void => this.logger?.error({ error }, 'a node cannot be asked');

  /** Notes the newest blocks of the nodes that were asked together. */
  noteHeads(heads: readonly { node: Node; number: number }[], agreed: number | undefined): void {
    const now = this.time.elapsed();
    for (const { node, number } of heads) {
      const state = this.#of(node);
      if (state.head !== number) state.headSince = now;
      state.head = number;
    }
    const numbers = heads.map(({ number }) => number).sort((one, other) => other - one);
    const [highest = 0, second = highest] = numbers;
    // With three nodes or more, one that claims to be ahead of all others is not believed.
    const best = this.nodes.length > 2 ? second : highest;
    this.#best = Math.max(best, agreed ?? 0);
    for (const { node, number } of heads) {
      const state = this.#of(node);
      const isBehind = number + MOST_BEHIND < best || this.#standsStill(state, heads.length, highest);
      state.behindSince = isBehind ? (state.behindSince ?? now) : undefined;
      if (state.behindSince === undefined || now - state.behindSince < BEHIND_MS) continue;
      state.isBehind = true;
      this.#best = number + MOST_BEHIND < best ? best : highest;
      this.#setAway(node, `it is ${this.#best - number} blocks behind`, now);
    }
  }

  /**
   * Whether a node stands still while another one goes on, and the others are away. With three nodes or more,
   * this alone shows that it is behind: the one that is ahead may be wrong.
   */
  #standsStill({ head = 0, headSince }: State, heads: number, highest: number): boolean {
    const { blockTimeMs } = this.network;
    if (heads !== 2 || blockTimeMs === 0) return false;
    return head + MOST_BEHIND < highest && this.time.elapsed() - headSince >= STILL_BLOCKS * blockTimeMs;
  }

  /** Whether a node is behind, but not yet for so long that it is away. */
  get isAnyBehind(): boolean {
    return this.nodes.some((node) => this.isUp(node) && this.#of(node).behindSince !== undefined);
  }

  /** Notes that a node gave another answer than two others. */
  noteDifference(node: Node, block: string | undefined, difference: string): void {
    const state = this.#of(node);
    const isNew = this.time.elapsed() - state.troubledAt >= TROUBLED_MS;
    state.troubledAt = this.time.elapsed();
    state.differences++;
    state.lastDifference = { at: this.time.now(), block, difference };
    if (isNew)
      this.logger?.warn(
        { node: node.name, block, difference },
        'a node differs from two others: it is not believed',
      );
  }

  close(): void {
    this.#isClosed = true;
    for (const { cancelProbe } of this.#states.values()) cancelProbe();
    for (const { client } of this.nodes) client.destroy();
  }

  #of(node: Node): State {
    const state = this.#states.get(node);
    if (state === undefined) throw new Error(`${node.name} is not one of the nodes`);
    return state;
  }

  /** The nodes that are up. One that gave no reason to doubt it is first, in the order of the setting. */
  up(): Node[] {
    const now = this.time.elapsed();
    const doubtOf = (node: Node): number => {
      const { troubledAt, behindSince } = this.#of(node);
      return (now - troubledAt < TROUBLED_MS ? 2 : 0) + (behindSince === undefined ? 0 : 1);
    };
    return this.nodes.filter((node) => this.isUp(node)).sort((one, other) => doubtOf(one) - doubtOf(other));
  }

  /** Resolves when two nodes are up, or all have been asked. */
  async #firstAnswers(): Promise<void> {
    const probes = this.nodes.map((node) => (this.isUp(node) ? Promise.resolve() : this.#probe(node)));
    await new Promise<void>((resolve) => {
      let left = probes.length;
      for (const probe of probes)
        void probe.then(() => {
          if (--left === 0 || this.up().length >= 2) resolve();
        });
    });
  }

  /** Asks nodes that are away whether they are back. A question that was asked earlier does not count. */
  async #probeAll(nodes: readonly Node[]): Promise<void> {
    await Promise.all(
      nodes.map(async (node) => {
        await this.#of(node).probing;
        await this.#probe(node);
      }),
    );
  }

  #probe(node: Node): Promise<void> {
    const state = this.#of(node);
    state.probing ??= this.#askWhetherBack(node).finally(() => (state.probing = undefined));
    return state.probing;
  }

  async #askWhetherBack(node: Node): Promise<void> {
    const state = this.#of(node);
    const askedAt = this.time.elapsed();
    state.cancelProbe();
    try {
      state.chainId = Number(await this.#inTime(node.client.send('eth_chainId', [])));
      if (state.chainId !== this.network.chainId) {
        this.#setAway(node, `it is of chain id ${state.chainId}`, askedAt);
        return;
      }
      if (state.isBehind) {
        const head = Number(await this.#inTime(node.client.send('eth_blockNumber', [])));
        if (!(head + MOST_BEHIND >= this.#best)) {
          this.#setAway(node, `it is ${this.#best - head} blocks behind`, askedAt);
          return;
        }
      }
      this.#setUp(node);
    } catch (error) {
      this.#setAway(node, reasonOf(error), askedAt);
    }
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    return within(this.time, LATE_MS, (late) => untilAborted(late, answer), new Error(NO_ANSWER));
  }

  #setUp(node: Node): void {
    const state = this.#of(node);
    if (state.isUp || this.#isClosed) return;
    if (state.failedFrom > -Infinity) this.logger?.info({ node: node.name }, 'a node is back');
    const now = this.time.elapsed();
    Object.assign(state, { isUp: true, since: this.time.now(), upSince: now, reason: undefined });
    Object.assign(state, { isBehind: false, behindSince: undefined, headSince: now });
    this.#changed(now);
  }

  #setAway(node: Node, reason: string, failedFrom: number): void {
    const state = this.#of(node);
    if (this.#isClosed || (state.isUp && failedFrom < state.upSince)) return;
    state.failedFrom = Math.max(state.failedFrom, failedFrom);
    const isNew = state.isUp || state.awaySince === -Infinity;
    if (isNew) {
      this.logger?.warn({ node: node.name, reason }, 'a node is away: it is left out');
      const now = this.time.elapsed();
      Object.assign(state, { isUp: false, since: this.time.now(), awaySince: now });
      this.#changed(now);
    }
    state.reason = reason;
    state.cancelProbe();
    const pauseMs = isNew ? FIRST_PROBE_MS : PROBE_EVERY_MS;
    state.cancelProbe = this.time.later(pauseMs, () => void this.#probe(node));
  }

  #changed(now: number): void {
    const up = this.up();
    this.#aloneSince = up.length === 1 ? now : undefined;
    const [left] = up;
    const wasAskedAll = this.nodes.every((node) => this.#of(node).awaySince > -Infinity || this.isUp(node));
    if (up.length === 1 && wasAskedAll)
      this.logger?.warn({ node: left?.name }, 'one node is left: it is asked for logs twice');
    for (const listener of this.#listeners) listener();
  }
}

const NO_ANSWER = `no answer within ${LATE_MS / 1_000} s`;

/** Whether a node could not be reached, as opposed to an answer that is a refusal. */
function isFailure(error: unknown): boolean {
  if (isRangeRefused(error) || isThrottled(error)) return false;
  if (isError(error, 'SERVER_ERROR') || isError(error, 'TIMEOUT')) return true;
  if (error instanceof ServiceError || nodeErrorOf(error) !== undefined) return false;
  return !isError(error, 'CALL_EXCEPTION') && !isError(error, 'UNSUPPORTED_OPERATION');
}

/** Why a node is away. */
function reasonOf(error: unknown): string {
  const isLate = isError(error, 'TIMEOUT') || (error instanceof Error && error.message === NO_ANSWER);
  return isLate ? NO_ANSWER : `it ${problemOf(error)}`;
}
