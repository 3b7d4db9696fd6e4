import { lookup } from 'node:dns';
import { Agent, fetch } from 'undici';
import { ServiceError } from '../base/errors';
import type { SinkRules } from '../base/sink-rules';
import { type Time, untilAborted, within } from '../base/time';
import { piecesOf, outcomeOf, type Outcome } from '../base/worker-tasks';
import { createWorkers, openProcess, type Workers } from '../base/workers';
import { inheritedEnvironment } from '../config/config';
import { ForbiddenAddressError, guardedConnector } from '../delivery/guarded-connector';
import { createFetchingBytes, LONGEST_FETCHING_MS, type Get } from '../did/fetch-json';
import type { FetchedBytes } from '../did/fetched-json';
import type { TokenState } from '../registry/read-token-state';
import type { NetworkNode } from '../registry/registry-contracts';
import type { TokenLocation } from '../token/token-location';

/** JSON in UTF-8, as it is sent. */
export type JsonParts = Uint8Array[];

/** Reads a token, and adds the addresses of its nodes to those that were asked. */
export type ReadToken = (location: TokenLocation, lookedUp: string[]) => Promise<TokenState>;

/**
 * Processes that check what callers send. Rubbish may take long there, and holds nothing else up. If it takes
 * all memory, its process ends alone. It would not in a thread: if a large string does not fit, V8 ends the
 * whole process.
 *
 * `left` aborts when the caller has gone away. @throws BusyError; ServiceError CHECK_ENDED; the errors of the
 * checks.
 */
export interface CheckingPool {
  /** The result is a Validation. */
  validate(this: void, bytes: Uint8Array): Promise<JsonParts>;
  /** The result is a VerifiedView. */
  verify(bytes: Uint8Array, left: AbortSignal, readToken: ReadToken): Promise<JsonParts>;
  /** The result has the derived credential. */
  derive(this: void, bytes: Uint8Array, left: AbortSignal): Promise<JsonParts>;
  /** The result is an EvidenceFile. */
  evidence(this: void, node: NetworkNode, location: TokenLocation, left: AbortSignal): Promise<JsonParts>;
  stop(): Promise<void>;
}

/** The work of a process. What a stranger sent is never read in a process that knows URLs of nodes. */
export interface CheckingTask {
  kind: 'validate' | 'verify' | 'derive' | 'evidence';
  /** URL of the own context of Bills of Lading. It is never fetched. */
  contextUrl: string;
  found: Omit<Found, 'fetched'>;
  /** Where evidence is read. */
  source?: { node: NetworkNode; location: TokenLocation };
}

/** `mayComeLater`: there is no answer now. */
type HostAnswer = FetchedBytes & { mayComeLater: boolean };

/** Parts that come before a task: the bytes to check, in pieces, and the answers of hosts with their URLs. */
export type CheckingPart = Uint8Array | [url: string, answer: HostAnswer];

/** The answers of others, as far as they are known. */
export interface Found {
  /** By their URLs. */
  fetched: Map<string, HostAnswer>;
  token?: Outcome<TokenState>;
  /** Addresses that were asked. */
  lookedUp: string[];
}

/** The questions that a check cannot go on without. */
export interface Wanted {
  /** URLs of contexts and of a DID document. */
  urls: string[];
  token?: TokenLocation;
}

/** The settings of checks. */
export interface CheckingSettings extends Pick<CheckingTask, 'contextUrl'> {
  time: Time;
  /** The addresses that may be asked: the maker of a credential chooses them. */
  rules: SinkRules;
  /** For tests: less than the longest time for fetching, in milliseconds, and than the heap. */
  fetchMs?: number;
  heapMegabytes?: number;
}

const IN_TURN = {
  permits: 1,
  waiting: 20,
  waitMs: 30_000,
  busy: 'Too many checks at once: try again later.',
};
/** A process that nobody needs ends. Another starts in half a second. */
const IDLE_MS = 60_000;
/** Verifying 20,000 values of 50 MB took 50 to 100 s of processor time on a busy machine. */
const LONGEST_MS = 300_000;
/**
 * Megabytes of heap of a process. A document of 50 MB needs these, in steps of 128 (Node.js 20):
 *
 *     one value of                                            signed  verified  derived
 *     Chinese letters                                            256       256      256
 *     ASCII, or emoji                                            384       384      384
 *     ASCII, 200,000 DEL, and one Chinese letter                 640       896      896
 *     ASCII, three million line ends, and one Chinese letter     896      1152     1152
 *
 * One letter beyond Latin 1 doubles the memory of the whole value, and six copies exist at once. 9,960
 * objects with the 50 MB, line ends and a Chinese letter in each, were signed with 640 and verified with 896.
 */
const HEAP_MEGABYTES = 1536;
const LATE = `it took longer than ${LONGEST_MS / 1_000} s`;
const LOST = 'its process was lost. It may need more memory than a check may have';
const NOT_STARTED = 'its process could not be started';
const REMEDY = 'Try it again, or use `npx tdoc`, which has no limit.';

/** Does one task at a time. It wants answers of others, unless it has sent its result. */
type Checker = Workers<CheckingTask, Wanted | undefined>;

/** One process for checks of credentials, one for what is typed in the console, one that reads evidence. */
export function createCheckingPool({
  time,
  contextUrl,
  rules,
  fetchMs = LONGEST_FETCHING_MS,
  heapMegabytes = HEAP_MEGABYTES,
}: CheckingSettings): CheckingPool {
  const checkerIn = (env: Record<string, string>): Checker =>
    createWorkers({
      ...IN_TURN,
      time,
      open: () => openProcess('answers/checking-process.js', heapMegabytes, env),
      // An error of starting a process names a system call.
      lost: (cause) => ended(cause instanceof Error && 'syscall' in cause ? NOT_STARTED : LOST, cause),
      idleMs: IDLE_MS,
      abandonedMs: 0,
    });
  const credentials = checkerIn({});
  const typed = checkerIn({});
  // It connects to nodes, with the certificates and proxies of this machine.
  const collected = checkerIn(inheritedEnvironment());
  const stopping = new AbortController();

  /** Asks others without a permit: the maker of a credential chooses how long that takes. */
  async function check(
    checker: Checker,
    task: Pick<CheckingTask, 'kind' | 'source'>,
    bytes: Uint8Array,
    left: AbortSignal,
    readToken?: ReadToken,
  ): Promise<JsonParts> {
    const pieces = piecesOf(bytes);
    const found: Found = { fetched: new Map(), lookedUp: [] };
    let restMs = fetchMs;
    const checkUntil = async (late: AbortSignal): Promise<JsonParts> => {
      const signal = AbortSignal.any([left, stopping.signal, late]);
      for (;;) {
        const { fetched, ...others } = found;
        const result: JsonParts = [];
        const wanted = await checker.run({ ...task, contextUrl, found: others }, signal, {
          parts: [...pieces, ...fetched],
          onPart: (part) => result.push(part as Uint8Array),
        });
        if (wanted === undefined) return result;
        const { urls, token } = wanted;
        const began = time.elapsed();
        const nodes: string[] = [];
        const asking = Promise.all([
          askHosts(urls, found, { time, rules, withinMs: fetchMs, restMs }, signal).then(
            () => (restMs -= time.elapsed() - began),
          ),
          token && readToken && outcomeOf(readToken(token, nodes)).then((outcome) => (found.token = outcome)),
        ]);
        await untilAborted(signal, asking);
        found.lookedUp.push(...nodes);
      }
    };
    return within(time, LONGEST_MS, checkUntil, ended(LATE));
  }

  return {
    validate: (bytes) => check(typed, { kind: 'validate' }, bytes, stopping.signal),
    verify: (bytes, left, readToken) => check(credentials, { kind: 'verify' }, bytes, left, readToken),
    derive: (bytes, left) => check(credentials, { kind: 'derive' }, bytes, left),
    evidence: (node, location, left) =>
      check(collected, { kind: 'evidence', source: { node, location } }, new Uint8Array(), left),
    async stop() {
      stopping.abort(ended('the service stops'));
      await Promise.all([credentials, typed, collected].map((checker) => checker.stop()));
    },
  };
}

function ended(reason: string, cause?: unknown): ServiceError {
  return new ServiceError('CHECK_ENDED', `The check ended early: ${reason}.`, { cause, remedy: REMEDY });
}

const CONNECT_WITHIN_MS = 5_000;

/** The one who chose the address of a context is not the one who may allow it. */
const FORBIDDEN = 'this service does not connect to addresses of its kind';

/**
 * Fetches from allowed addresses only, and adds the answers to what was found. They are not read here: a
 * stranger chose them, and they would hold up all others.
 *
 * @param withinMs for all that a check fetches. `restMs`: what is left of it.
 * @param left aborts when nobody waits for the answers any more.
 */
async function askHosts(
  urls: readonly string[],
  { fetched, lookedUp }: Found,
  { time, rules, withinMs, restMs }: { time: Time; rules: SinkRules; withinMs: number; restMs: number },
  left: AbortSignal,
): Promise<void> {
  const agents = new Map(
    ['https:', 'http:'].map((protocol) => {
      const connect = guardedConnector({ rules, lookup }, protocol, CONNECT_WITHIN_MS);
      return [protocol, new Agent({ connect })];
    }),
  );
  const forbidden = new Set<string>();
  const get: Get = (url, options) => {
    lookedUp.push(url.href);
    const dispatcher = agents.get(url.protocol);
    const signal = AbortSignal.any([options.signal, left]);
    return fetch(url, { ...options, signal, ...(dispatcher && { dispatcher }) }).catch((thrown: unknown) => {
      if (!((thrown as Error).cause instanceof ForbiddenAddressError)) throw thrown;
      forbidden.add(url.href);
      throw new Error(FORBIDDEN);
    });
  };
  const fetchOne = createFetchingBytes(time, withinMs, get, restMs);
  try {
    await Promise.all(
      urls.map(async (href) => {
        const answer = await fetchOne(new URL(href));
        const mayComeLater = answer.kind === 'unavailable' && !forbidden.has(answer.url);
        fetched.set(href, { ...answer, mayComeLater });
      }),
    );
  } finally {
    for (const agent of agents.values()) await agent.destroy();
  }
  left.throwIfAborted();
}
