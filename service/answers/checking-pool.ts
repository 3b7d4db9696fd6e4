import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../base/project-root';
import { ServiceError } from '../base/errors';
import { createSemaphore } from '../base/semaphore';
import { newDeferred, untilAborted } from '../base/waiting';
import { createDocumentLoader } from '../issuance/document-loader';
import { fromTransferredError, toTransferredError } from '../issuance/transferred-error';
import type { TokenState } from '../registry/read-token-state';
import type { NetworkNode } from '../registry/registry-contracts';
import type { TokenLocation } from '../token/token-location';
import { askHosts, type Asking } from './ask-hosts';
import type { CheckingOutcome, CheckingTask, TokenAnswer, Wanted } from './checking-process';
import { sendPieces, type Message } from './pieces';

/** JSON in UTF-8, as it is sent. `length` is in bytes. */
export interface JsonBytes {
  length: number;
  parts: Uint8Array[];
}

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
  validate(this: void, bytes: Uint8Array): Promise<JsonBytes>;
  /** The result is a VerifiedView. */
  verify(bytes: Uint8Array, left: AbortSignal, readToken: ReadToken): Promise<JsonBytes>;
  /** The result has the derived credential. */
  derive(this: void, bytes: Uint8Array, left: AbortSignal): Promise<JsonBytes>;
  /** The result is an EvidenceFile. */
  evidence(this: void, node: NetworkNode, location: TokenLocation, left: AbortSignal): Promise<JsonBytes>;
  stop(): Promise<void>;
}

/** The settings of checks. */
export interface CheckingSettings extends Pick<CheckingTask, 'contextUrl'>, Pick<Asking, 'rules'> {
  /** For tests: less than the longest time for fetching, in milliseconds, and than the heap. */
  fetchMs?: number;
  heapMegabytes?: number;
}

const PROCESS = join(PROJECT_ROOT, 'dist/service/answers/checking-process.js');
const MOST_WAITING = 20;
const BUSY = 'Too many checks at once: try again later.';
/** One process for checks of credentials, one for what is typed in the console, one that reads evidence. */
const IN_TURN = { permits: 1, waiting: MOST_WAITING, waitMs: 30_000 };
/** A process that nobody needs ends. Another starts in half a second. */
const IDLE_MS = 60_000;
/** Verifying the most statements takes half a minute; evidence has two answers for each of 300 blocks. */
const LONGEST_MS = 180_000;
const LONGEST_FETCHING_MS = 10_000;
/**
 * Megabytes of heap of a process. A document of 50 MB needs at most, in steps of 128:
 *
 *     one value of                                       signed  verified  derived
 *     ASCII                                                 256       512      512
 *     Chinese letters, or emoji                             512       512      512
 *     ASCII, line ends or quotes, and one Chinese letter    512       768      768
 *
 * These were measured before versions were verified when they are derived. Since then the last kind was
 * verified with 1280, not with 1024; the others were not measured again.
 *
 * One letter beyond Latin 1 doubles the memory of the whole value, and six copies exist at once.
 */
const HEAP_MEGABYTES = 1536;
const REMEDY = 'Try it again, or use `npx tdoc`, which has no limit.';

/** The processes start when they are first needed. */
export function createCheckingPool({
  contextUrl,
  rules,
  fetchMs = LONGEST_FETCHING_MS,
  heapMegabytes = HEAP_MEGABYTES,
}: CheckingSettings): CheckingPool {
  const credentials = createSemaphore(IN_TURN, BUSY);
  const typed = createSemaphore(IN_TURN, BUSY);
  const collected = createSemaphore(IN_TURN, BUSY);
  const known = createDocumentLoader(contextUrl);
  const processes = new Set<ChildProcess>();
  const idle = new Map<ChildProcess, NodeJS.Timeout>();
  const stopping = new AbortController();

  function start(): ChildProcess {
    const child = fork(PROCESS, {
      serialization: 'advanced',
      execArgv: [`--max-old-space-size=${heapMegabytes}`],
      // Without the secrets of the service.
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    processes.add(child);
    const forget = (): void => {
      processes.delete(child);
      idle.delete(child);
    };
    child.once('exit', forget).on('error', forget).unref();
    child.channel?.unref();
    return child;
  }

  function take(): ChildProcess {
    const [child] = idle.keys();
    if (child === undefined) return start();
    clearTimeout(idle.get(child));
    idle.delete(child);
    return child;
  }

  async function run(
    task: Omit<CheckingTask, 'contextUrl'>,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<JsonBytes | { wanted: Wanted }> {
    signal.throwIfAborted();
    const child = take();
    const kill = (): void => void child.kill('SIGKILL');
    const late = setTimeout(kill, LONGEST_MS);
    signal.addEventListener('abort', kill);
    const began = performance.now();
    const { outcome, parts } = await exchange(child, { ...task, contextUrl }, bytes)
      .catch((cause: unknown) => {
        kill();
        signal.throwIfAborted();
        throw ended(cause, performance.now() - began >= LONGEST_MS);
      })
      .finally(() => {
        clearTimeout(late);
        signal.removeEventListener('abort', kill);
      });
    idle.set(child, setTimeout(kill, IDLE_MS).unref());
    if ('error' in outcome) throw fromTransferredError(outcome.error);
    if ('wanted' in outcome) return outcome;
    return { length: parts.reduce((length, part) => length + part.length, 0), parts };
  }

  /** Asks others without a permit: the maker of a credential chooses how long that takes. */
  async function check(
    kind: 'verify' | 'derive',
    bytes: Uint8Array,
    left: AbortSignal,
    readToken?: ReadToken,
  ): Promise<JsonBytes> {
    const signal = AbortSignal.any([left, stopping.signal]);
    const first = await credentials.hold(signal, () => run({ kind }, bytes, signal));
    if (!('wanted' in first)) return first;
    const { token: location } = first.wanted;
    const asking = Promise.all([
      askHosts(first.wanted, { rules, known, withinMs: fetchMs }, signal),
      location && readToken && answerAbout(location, readToken),
    ]);
    const [{ fetched, lookedUp }, token] = await untilAborted(signal, asking);
    const found = { fetched, lookedUp: [...lookedUp, ...(token?.nodes ?? [])], token: token?.answer };
    const second = await credentials.hold(signal, () => run({ kind, found }, bytes, signal));
    if ('wanted' in second) throw new Error('A check that was answered wants more.');
    return second;
  }

  return {
    validate: (bytes) =>
      typed.hold(stopping.signal, () =>
        run({ kind: 'validate' }, bytes, stopping.signal),
      ) as Promise<JsonBytes>,
    verify: (bytes, left, readToken) => check('verify', bytes, left, readToken),
    derive: (bytes, left) => check('derive', bytes, left),
    evidence: (node, location, left) => {
      const signal = AbortSignal.any([left, stopping.signal]);
      const task = { kind: 'evidence', source: { node, location } } as const;
      return collected.hold(signal, () => run(task, new Uint8Array(), signal)) as Promise<JsonBytes>;
    },
    async stop() {
      stopping.abort(ended(new Error('The service stops.'), false));
      const ends = [...processes].map((child) => once(child, 'exit'));
      for (const child of processes) child.kill('SIGKILL');
      await Promise.all(ends);
    },
  };
}

/** Sends a task, and receives its outcome and what was sent before it. @throws Error if the process ends. */
async function exchange(
  child: ChildProcess,
  task: CheckingTask,
  bytes: Uint8Array,
): Promise<{ outcome: CheckingOutcome; parts: Uint8Array[] }> {
  const { promise, resolve, reject } = newDeferred<CheckingOutcome>();
  const parts: Uint8Array[] = [];
  const receive = (message: Message<CheckingOutcome>): void => {
    if (message instanceof Uint8Array) parts.push(message);
    else resolve(message);
  };
  const lose = (code: number | null, signal: string | null): void =>
    reject(new Error(`Its process ended with ${signal ?? code}.`));
  child.on('message', receive).on('exit', lose).on('error', reject);
  sendPieces(child, bytes).then(() => child.send(task), reject);
  try {
    return { outcome: await promise, parts };
  } finally {
    child.off('message', receive).off('exit', lose).off('error', reject);
  }
}

async function answerAbout(
  location: TokenLocation,
  readToken: ReadToken,
): Promise<{ answer: TokenAnswer; nodes: string[] }> {
  const nodes: string[] = [];
  const answer = await readToken(location, nodes).then(
    (state): TokenAnswer => ({ state }),
    (error: unknown): TokenAnswer => ({ error: toTransferredError(error) }),
  );
  return { answer, nodes };
}

function ended(cause: unknown, isLate: boolean): ServiceError {
  const message = isLate
    ? `The check took longer than ${LONGEST_MS / 1_000} s, and was ended.`
    : 'The check ended early: its process was lost. It may need more memory than a check may have.';
  return new ServiceError('CHECK_ENDED', message, { cause, remedy: REMEDY });
}
