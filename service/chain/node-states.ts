import { type Time, untilAborted, within } from '../base/time';
import { ChainError } from '../base/errors';
import type { Logger } from '../base/logger';
import type { Network } from './networks';
import type { Node } from './node';
import { isFailure, LATE_MS, NO_ANSWER, reasonOf, wrongChain } from './reach-node';

// A node is away if it refuses connections, does not answer within three seconds, is of another chain, or is
// behind. It is not asked then, except whether it is back.

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

/** The answer of a node: a value, its refusal, or a failure to reach it. */
export type Vote = { node: Node } & (
  { kind: 'value'; value: unknown } | { kind: 'refusal' | 'failure'; error: unknown }
);

/**
 * The state of a node. All times are by `elapsed()`.
 *
 * - `up`: it is asked. A question from before `since` says nothing about it.
 * - `behind`: it is asked too, but after the others: its head is behind.
 * - `away`: it is asked only whether it is back. `since` is -Infinity if it was not asked yet. `failedFrom`:
 *   when the last question that failed was asked. `isBehind`: it must come near to the others.
 */
type State =
  | { kind: 'up'; since: number }
  | { kind: 'behind'; since: number; behindSince: number }
  | { kind: 'away'; since: number; failedFrom: number; reason: string; isBehind: boolean };

/** Everything known about a node. */
class NodeRecord {
  state: State = {
    kind: 'away',
    since: -Infinity,
    failedFrom: -Infinity,
    reason: NOT_ASKED,
    isBehind: false,
  };
  /** Its newest block, and when that was another one last. */
  head = { number: undefined as number | undefined, since: 0 };
  /** When it was late, or differed from two others, by `elapsed()`. */
  troubledAt = -Infinity;
  chainId: number | undefined;
  differences = 0;
  lastDifference: Difference | undefined;
  probing: Promise<void> | undefined;
  cancelProbe = (): void => undefined;

  /** @param reportedSince start of the state in a report, in epoch milliseconds. */
  constructor(public reportedSince: number) {}
}

/** Tracks which of the nodes answer, and which of them are odd. */
export class NodeStates {
  readonly #records: Map<Node, NodeRecord>;
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
    this.#records = new Map(nodes.map((node) => [node, new NodeRecord(time.now())]));
  }

  report(): NodeReport[] {
    const now = this.time.now();
    return this.nodes.map((node) => {
      const { state, reportedSince, head, differences, lastDifference } = this.#of(node);
      const isRecent = lastDifference !== undefined && now - lastDifference.at < DIFFERENCE_SHOWN_MS;
      return {
        url: node.name,
        state: state.kind === 'away' ? 'away' : 'up',
        since: reportedSince,
        reason: state.kind === 'away' ? state.reason : undefined,
        headBlock: head.number,
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
    if (this.nodes.some((node) => this.#isAway(node, ({ failedFrom }) => failedFrom === -Infinity)))
      await this.#firstAnswers();
    if (this.up().length === 0) await this.#probeAll(this.nodes);
    while (this.#aloneSince !== undefined && !this.#isClosed) {
      const aloneSince = this.#aloneSince;
      const unsure = this.nodes.filter((node) =>
        this.#isAway(node, ({ since, failedFrom }) => since !== aloneSince && failedFrom < aloneSince),
      );
      if (unsure.length === 0) break;
      await this.#probeAll(unsure);
    }
    const up = this.up();
    if (up.length > 0) return up;
    const reasons = this.report().map(({ url, reason }) => `${url}: ${reason}`);
    throw new ChainError('RPC_UNREACHABLE', `No node of RPC_URL answers (${reasons.join('; ')}).`);
  }

  isUp(node: Node): boolean {
    return this.#of(node).state.kind !== 'away';
  }

  /** Whether a node is away in this manner. */
  #isAway(node: Node, isSo: (state: State & { kind: 'away' }) => boolean): boolean {
    const { state } = this.#of(node);
    return state.kind === 'away' && isSo(state);
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
      const record = this.#of(node);
      record.troubledAt = this.time.elapsed();
      const mayAnswer = isLong && this.isUp(node) && record.state.since <= askedAt;
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
      const record = this.#of(node);
      if (record.head.number !== number) record.head = { number, since: now };
    }
    const numbers = heads.map(({ number }) => number).sort((one, other) => other - one);
    const [highest = 0, second = highest] = numbers;
    // With three nodes or more, one that claims to be ahead of all others is not believed.
    const best = this.nodes.length > 2 ? second : highest;
    this.#best = Math.max(best, agreed ?? 0);
    for (const { node, number } of heads) {
      const record = this.#of(node);
      if (record.state.kind === 'away') continue;
      const isBehind = number + MOST_BEHIND < best || this.#standsStill(record, heads.length, highest);
      const { since } = record.state;
      const behindSince = record.state.kind === 'behind' ? record.state.behindSince : now;
      record.state = isBehind ? { kind: 'behind', since, behindSince } : { kind: 'up', since };
      if (!isBehind || now - behindSince < BEHIND_MS) continue;
      this.#best = number + MOST_BEHIND < best ? best : highest;
      this.#setAway(node, `it is ${this.#best - number} blocks behind`, now, true);
    }
  }

  /**
   * Whether a node stands still while another one goes on, and the others are away. With three nodes or more,
   * this alone shows that it is behind: the one that is ahead may be wrong.
   */
  #standsStill({ head: { number = 0, since } }: NodeRecord, heads: number, highest: number): boolean {
    const { blockTimeMs } = this.network;
    if (heads !== 2 || blockTimeMs === 0) return false;
    return number + MOST_BEHIND < highest && this.time.elapsed() - since >= STILL_BLOCKS * blockTimeMs;
  }

  /** Whether a node is behind, but not yet for so long that it is away. It does not matter after the end. */
  get isAnyBehind(): boolean {
    return !this.#isClosed && this.nodes.some((node) => this.#of(node).state.kind === 'behind');
  }

  /** Notes that a node gave another answer than two others. */
  noteDifference(node: Node, block: string | undefined, difference: string): void {
    const record = this.#of(node);
    const isNew = this.time.elapsed() - record.troubledAt >= TROUBLED_MS;
    record.troubledAt = this.time.elapsed();
    record.differences++;
    record.lastDifference = { at: this.time.now(), block, difference };
    const line = { node: node.name, block, difference };
    if (isNew) this.logger?.warn(line, 'a node differs from two others: it is not believed');
  }

  close(): void {
    this.#isClosed = true;
    for (const { cancelProbe } of this.#records.values()) cancelProbe();
    for (const node of this.nodes) node.close();
  }

  #of(node: Node): NodeRecord {
    const record = this.#records.get(node);
    if (record === undefined) throw new Error(`${node.name} is not one of the nodes`);
    return record;
  }

  /** The nodes that are up. One that gave no reason to doubt it is first, in the order of the setting. */
  up(): Node[] {
    const now = this.time.elapsed();
    const doubtOf = (node: Node): number => {
      const { troubledAt, state } = this.#of(node);
      return (now - troubledAt < TROUBLED_MS ? 2 : 0) + (state.kind === 'behind' ? 1 : 0);
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
    const record = this.#of(node);
    record.probing ??= this.#askWhetherBack(node).finally(() => (record.probing = undefined));
    return record.probing;
  }

  async #askWhetherBack(node: Node): Promise<void> {
    const record = this.#of(node);
    const askedAt = this.time.elapsed();
    record.cancelProbe();
    try {
      record.chainId = Number(await this.#inTime(node.send('eth_chainId', [])));
      if (record.chainId !== this.network.chainId)
        return this.#setAway(node, `it is of chain id ${record.chainId}`, askedAt);
      if (this.#isAway(node, ({ isBehind }) => isBehind)) {
        const head = Number(await this.#inTime(node.send('eth_blockNumber', [])));
        if (!(head + MOST_BEHIND >= this.#best))
          return this.#setAway(node, `it is ${this.#best - head} blocks behind`, askedAt);
      }
      this.#setUp(node);
    } catch (error) {
      this.#setAway(node, reasonOf(error), askedAt);
    }
  }

  #inTime<T>(answer: Promise<T>): Promise<T> {
    return within(this.time, LATE_MS, (late) => untilAborted(late, answer), new Error(NO_ANSWER));
  }

  #setUp(node: Node): void {
    const record = this.#of(node);
    if (record.state.kind !== 'away' || this.#isClosed) return;
    if (record.state.failedFrom > -Infinity) this.logger?.info({ node: node.name }, 'a node is back');
    const since = this.time.elapsed();
    record.state = { kind: 'up', since };
    record.reportedSince = this.time.now();
    record.head.since = since;
    this.#changed(since);
  }

  /** @param failedFrom when the question that failed was asked. */
  #setAway(node: Node, reason: string, failedFrom: number, isBehind = false): void {
    const record = this.#of(node);
    const before = record.state;
    const isAway = before.kind === 'away';
    if (this.#isClosed || (!isAway && failedFrom < before.since)) return;
    const isNew = !isAway || before.since === -Infinity;
    record.state = {
      kind: 'away',
      since: isNew ? this.time.elapsed() : before.since,
      failedFrom: isAway ? Math.max(before.failedFrom, failedFrom) : failedFrom,
      reason,
      isBehind: isBehind || (isAway && before.isBehind),
    };
    if (isNew) {
      this.logger?.warn({ node: node.name, reason }, 'a node is away: it is left out');
      record.reportedSince = this.time.now();
      this.#changed(record.state.since);
    }
    record.cancelProbe();
    const pauseMs = isNew ? FIRST_PROBE_MS : PROBE_EVERY_MS;
    record.cancelProbe = this.time.later(pauseMs, () => void this.#probe(node));
  }

  #changed(now: number): void {
    const up = this.up();
    this.#aloneSince = up.length === 1 ? now : undefined;
    const [left] = up;
    const wereAllAsked = !this.nodes.some((node) => this.#isAway(node, ({ since }) => since === -Infinity));
    if (up.length === 1 && wereAllAsked)
      this.logger?.warn({ node: left?.name }, 'one node is left: it is asked for logs twice');
    for (const listener of this.#listeners) listener();
  }
}
