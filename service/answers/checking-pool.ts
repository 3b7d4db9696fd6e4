import { fork, type ChildProcess } from 'node:child_process';
import { on, once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../base/project-root';
import { ServiceError } from '../base/errors';
import { createSemaphore } from '../base/semaphore';
import type { SinkRules } from '../base/sink-rules';
import type { Time } from '../base/time';
import { untilAborted, within } from '../base/waiting';
import { inheritedEnvironment } from '../config/config';
import { LONGEST_FETCHING_MS } from '../did/fetch-json';
import { fromTransferredError, toTransferredError } from '../issuance/transferred-error';
import type { TokenState } from '../registry/read-token-state';
import type { NetworkNode } from '../registry/registry-contracts';
import type { TokenLocation } from '../token/token-location';
import { askHosts } from './ask-hosts';
import { send, sendPieces, type CheckingOutcome, type CheckingTask, type Found } from './checking-channel';

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

/** The settings of checks. */
export interface CheckingSettings extends Pick<CheckingTask, 'contextUrl'> {
  time: Time;
  /** The addresses that may be asked: the maker of a credential chooses them. */
  rules: SinkRules;
  /** For tests: less than the longest time for fetching, in milliseconds, and than the heap. */
  fetchMs?: number;
  heapMegabytes?: number;
}

const PROCESS = join(PROJECT_ROOT, 'dist/service/answers/checking-process.js');
const IN_TURN = { permits: 1, waiting: 20, waitMs: 30_000 };
const BUSY = 'Too many checks at once: try again later.';
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

/** One process for checks of credentials, one for what is typed in the console, one that reads evidence. */
export function createCheckingPool({
  time,
  contextUrl,
  rules,
  fetchMs = LONGEST_FETCHING_MS,
  heapMegabytes = HEAP_MEGABYTES,
}: CheckingSettings): CheckingPool {
  const credentials = createChecker(time, heapMegabytes, {});
  const typed = createChecker(time, heapMegabytes, {});
  // It connects to nodes, with the certificates and proxies of this machine.
  const collected = createChecker(time, heapMegabytes, inheritedEnvironment());
  const stopping = new AbortController();

  /** Asks others without a permit: the maker of a credential chooses how long that takes. */
  async function check(
    checker: Checker,
    task: Pick<CheckingTask, 'kind' | 'source'>,
    bytes: Uint8Array,
    left: AbortSignal,
    readToken?: ReadToken,
  ): Promise<JsonParts> {
    const found: Found = { fetched: new Map(), lookedUp: [] };
    let restMs = fetchMs;
    const checkUntil = async (late: AbortSignal): Promise<JsonParts> => {
      const signal = AbortSignal.any([left, stopping.signal, late]);
      for (;;) {
        const { outcome, parts } = await checker.run({ ...task, contextUrl }, bytes, found, signal);
        if ('error' in outcome) throw fromTransferredError(outcome.error);
        if ('isDone' in outcome) return parts;
        const { urls, token } = outcome.wanted;
        const began = time.elapsed();
        const nodes: string[] = [];
        const asking = Promise.all([
          askHosts(urls, found, { time, rules, withinMs: fetchMs, restMs }, signal).then(
            () => (restMs -= time.elapsed() - began),
          ),
          token &&
            readToken?.(token, nodes).then(
              (state) => (found.token = { state }),
              (error: unknown) => (found.token = { error: toTransferredError(error) }),
            ),
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

/** The outcome of a task, and what was sent before it. */
interface Exchanged {
  outcome: CheckingOutcome;
  parts: JsonParts;
}

/** A process that runs one task at a time. */
interface Checker {
  run(task: CheckingTask, bytes: Uint8Array, found: Found, left: AbortSignal): Promise<Exchanged>;
  stop(): Promise<void>;
}

/** @param env has none of the secrets of the service. */
function createChecker(time: Time, heapMegabytes: number, env: Record<string, string>): Checker {
  const { hold } = createSemaphore(time, IN_TURN, BUSY);
  let child: ChildProcess | undefined;
  let cancelIdle = (): void => undefined;

  function start(): ChildProcess {
    const started = fork(PROCESS, {
      serialization: 'advanced',
      execArgv: [`--max-old-space-size=${heapMegabytes}`],
      env,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const forget = (): void => void (child = child === started ? undefined : child);
    started.once('exit', forget).on('error', forget).unref();
    started.channel?.unref();
    return started;
  }

  function kill(): void {
    child?.kill('SIGKILL');
    child = undefined;
  }

  return {
    run: (task, bytes, found, left) =>
      hold(left, async () => {
        cancelIdle();
        const used = (child ??= start());
        try {
          const exchanged = await untilAborted(left, exchange(used, task, bytes, found));
          cancelIdle = time.later(IDLE_MS, kill);
          return exchanged;
        } catch (cause) {
          kill();
          left.throwIfAborted();
          throw ended(used.pid === undefined ? NOT_STARTED : LOST, cause);
        }
      }),
    async stop() {
      const last = child && once(child, 'exit');
      kill();
      await last;
      cancelIdle();
    },
  };
}

/** Sends a task, and receives its outcome and what was sent before it. @throws Error if the process ends. */
async function exchange(
  child: ChildProcess,
  task: CheckingTask,
  bytes: Uint8Array,
  { fetched, ...found }: Found,
): Promise<Exchanged> {
  const parts: JsonParts = [];
  const messages = on(child, 'message', { close: ['exit'] }) as AsyncIterable<[Uint8Array | CheckingOutcome]>;
  const sending = async (): Promise<void> => {
    await sendPieces(child, bytes);
    for (const [href, answer] of fetched) await send(child, { href, answer });
    await send(child, { task, found });
  };
  // A process that could not be started has no channel.
  sending().catch(() => child.kill('SIGKILL'));
  for await (const [message] of messages) {
    if (!(message instanceof Uint8Array)) return { outcome: message, parts };
    parts.push(message);
  }
  throw new Error(`Its process ended with ${child.signalCode ?? child.exitCode}.`);
}

function ended(reason: string, cause?: unknown): ServiceError {
  return new ServiceError('CHECK_ENDED', `The check ended early: ${reason}.`, { cause, remedy: REMEDY });
}
