import { type Time, repeat } from '../base/time';
import { ChainError, codeOf, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import type { RegistryName } from '../base/registry-name';
import { nodeFailure } from '../chain/node-errors';
import type { NodeReport } from '../chain/node-states';

/**
 * State of a feed:
 *
 * - starting: the registry has not been found on the chain yet;
 * - following: events are read;
 * - standby: another process reads them;
 * - failing: the node cannot be read; it is retried;
 * - stopped: an operator has to intervene.
 */
export type FeedState = 'starting' | 'following' | 'standby' | 'failing' | 'stopped';

/** The status of a feed, for health and metrics. */
export interface FeedStatus {
  state: FeedState;
  /** Start of the state, in epoch milliseconds. */
  since: number;
  /** The first block that has not been read. */
  nextBlock?: number | undefined;
  /** The chain's newest block at the last request. */
  headBlock?: number | undefined;
  /** The highest final block then: blocks up to it are read. Undefined if no block was final. */
  finalBlock?: number | undefined;
  /** Undefined while the feed is up to date. */
  catchUp?: CatchUp | undefined;
  /** Why, in the states failing and stopped. */
  code?: string | undefined;
  reason?: string | undefined;
  remedy?: string | undefined;
}

/** Why a feed is not read, for everybody to read. */
export interface FeedFailure {
  code: string;
  reason: string;
  remedy?: string | undefined;
}

const RETRIED = 'The service tries again by itself.';
const OTHER_NODE = `${RETRIED} If this goes on, set RPC_URL to another node.`;

/**
 * An error for everybody to read. Only errors of ours, and those of a node, are quoted: what a library says
 * may hold a secret that `mask` does not know.
 */
export function failureOf(error: unknown, mask: (text: string) => string): FeedFailure {
  const known = error instanceof ServiceError ? error : nodeFailure(error);
  if (known) {
    const { code, message, remedy = known instanceof ChainError ? OTHER_NODE : RETRIED } = known;
    return { code, reason: mask(message), remedy };
  }
  const [kind = 'an error'] = /^\w{1,40}$/.exec(codeOf(error) ?? '') ?? [];
  const remedy = 'Check the database. If it answers, report this as a fault of the service.';
  return { code: 'INTERNAL', reason: `The service or its database failed with ${kind}.`, remedy };
}

/** The feed of a registry, as health, metrics and the console show it. */
export interface FollowedFeed {
  name: RegistryName;
  network: string;
  chainId: number;
  /** Lower-case address. */
  registry: string;
  status: Readonly<FeedStatus>;
  /** The states of its nodes; undefined if it has only one. */
  nodes?: () => NodeReport[] | undefined;
}

/** The initial status of a feed. */
export function newFeedStatus(now: number): FeedStatus {
  return { state: 'starting', since: now };
}

/** Sets the state. `since` is kept if the state does not change. */
export function setState(status: FeedStatus, state: FeedState, now: number, failure?: FeedFailure): void {
  if (status.state !== state) status.since = now;
  status.state = state;
  status.code = failure?.code;
  status.reason = failure?.reason;
  status.remedy = failure?.remedy;
}

/** A catch-up: the reader has not reached the newest blocks yet. */
interface CatchUp {
  /** The blocks to read, both included. `toBlock` grows with the chain. */
  fromBlock: number;
  toBlock: number;
  /** Epoch milliseconds. */
  since: number;
  /** Ascending: the first is the start, or at least a minute old. */
  marks: readonly [Mark, ...Mark[]];
  /** The last failure, or refusal that makes reading slower. */
  slowed?: (FeedFailure & { at: number }) | undefined;
}

/** How far the reader and the chain were. */
interface Mark {
  at: number;
  nextBlock: number;
  toBlock: number;
}

/** The progress of a catch-up. The rates are of the last minute. */
export interface Progress extends Partial<FeedFailure> {
  blocksRead: number;
  blocks: number;
  blocksPerSecond: number;
  /** Blocks that became final. */
  chainBlocksPerSecond: number;
  /** Undefined while blocks are not read faster than the chain makes them. */
  secondsLeft: number | undefined;
  /** Not at this rate: the chain was as fast for a minute. */
  isEndless: boolean;
}

/** Shorter catch-ups are not reported: they are a few blocks that arrived together. */
const SHORTEST_MS = 1_000;
const LOG_EVERY_MS = 10_000;
const MEASURED_MS = 60_000;
const MARK_EVERY_MS = 1_000;
/** How long a failure counts as the reason of a slow catch-up. It takes up to a minute until the next one. */
const SLOWED_MS = 120_000;

/** The progress of a feed's catch-up. Undefined if there is none, or it has just begun. */
export function progressOf(
  { catchUp, nextBlock }: Pick<FeedStatus, 'catchUp' | 'nextBlock'>,
  now: number,
): Progress | undefined {
  if (catchUp === undefined || nextBlock === undefined || now - catchUp.since < SHORTEST_MS) return undefined;
  const { fromBlock, toBlock, slowed } = catchUp;
  const mark = markBefore(catchUp.marks, now);
  const perSecond = (blocks: number): number => Math.max(0, (1_000 * blocks) / (now - mark.at));
  const [read, made] = [perSecond(nextBlock - mark.nextBlock), perSecond(toBlock - mark.toBlock)];
  const { at, ...why } = slowed ?? { at: -Infinity };
  return {
    blocksRead: nextBlock - fromBlock,
    blocks: toBlock + 1 - fromBlock,
    blocksPerSecond: Math.round(100 * read) / 100,
    chainBlocksPerSecond: Math.round(100 * made) / 100,
    secondsLeft: read > made ? Math.ceil((toBlock + 1 - nextBlock) / (read - made)) : undefined,
    isEndless: read <= made && now - mark.at >= MEASURED_MS,
    ...(now - at < SLOWED_MS && why),
  };
}

/** The newest mark that is a minute old; the first if there is none. */
function markBefore(marks: CatchUp['marks'], now: number): Mark {
  return marks.findLast(({ at }) => at <= now - MEASURED_MS) ?? marks[0];
}

/** Tracks the catch-ups of a feed in `status.catchUp`. Logs their progress and their end. */
export class CatchUpReport {
  readonly #logging: { stop(): Promise<void> };
  #isLogged = false;

  constructor(
    private readonly status: FeedStatus,
    private readonly parts: { time: Time; logger: Logger; mask: (text: string) => string },
  ) {
    this.#logging = repeat(parts.time, () => this.#logProgress(), LOG_EVERY_MS, LOG_EVERY_MS);
  }

  async #logProgress(): Promise<void> {
    const progress = progressOf(this.status, this.parts.time.now());
    if (progress === undefined) return;
    this.#isLogged = true;
    this.parts.logger.info({ nextBlock: this.status.nextBlock, ...progress }, 'catching up with the chain');
  }

  /** Call it when `status.nextBlock` or the last block to read may have changed. */
  noteBlocks(toBlock: number): void {
    const { catchUp, nextBlock = 0 } = this.status;
    const now = this.parts.time.now();
    if (nextBlock <= toBlock) {
      const mark: Mark = { at: now, nextBlock, toBlock };
      const begun: CatchUp = catchUp ?? { fromBlock: nextBlock, toBlock, since: now, marks: [mark] };
      const { marks } = begun;
      const isNew = now - (marks.at(-1) ?? mark).at >= MARK_EVERY_MS;
      const old = markBefore(marks, now);
      const kept = isNew ? ([old, ...marks.filter(({ at }) => at > old.at), mark] as const) : marks;
      // A reorganisation may rewind to a block before the first.
      const fromBlock = Math.min(begun.fromBlock, nextBlock);
      this.status.catchUp = { ...begun, fromBlock, toBlock, marks: kept };
      return;
    }
    if (this.#isLogged && catchUp !== undefined) {
      const figures = { blocks: nextBlock - catchUp.fromBlock, seconds: (now - catchUp.since) / 1000 };
      this.parts.logger.info(figures, 'caught up with the chain');
    }
    this.forget();
  }

  /** Call it with each error of the node that makes reading slower, whether it is thrown or not. */
  readonly slowedBy = (error: unknown): FeedFailure => {
    const failure = failureOf(error, this.parts.mask);
    if (this.status.catchUp) this.status.catchUp.slowed = { ...failure, at: this.parts.time.now() };
    return failure;
  };

  /** Ends a catch-up that is not continued, without a log line. */
  forget(): void {
    this.status.catchUp = undefined;
    this.#isLogged = false;
  }

  async stop(): Promise<void> {
    await this.#logging.stop();
    this.forget();
  }
}
