import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import Piscina from 'piscina';
import { SigningError } from '../base/errors';
import { PROJECT_ROOT } from '../base/project-root';
import { createSemaphore } from '../base/semaphore';
import type { Time } from '../base/time';
import { pause, untilAborted } from '../base/waiting';
import { openIssuerKey } from '../keys/issuer-key';
import { openModule } from '../keys/pkcs11';
import type { Preparation, PreparationSettings, PrepareDocument } from './prepare-document';
import type { PreparationOutcome, SigningTask, ThreadMessage } from './signing-worker';
import { fromTransferredError } from './transferred-error';

/** The load of the signing threads. */
export interface SigningFigures {
  /** Documents that wait for a thread. */
  waiting: number;
  /** Documents that have a thread. */
  busy: number;
  threads: number;
}

/** Threads that prepare documents in the order of the requests. Each thread prepares one at a time. */
export type SigningPool = Awaited<ReturnType<typeof createSigningPool>>;

/** Tests set the limits. */
export interface SigningPoolOptions {
  time: Time;
  /** Number of threads; default: one per processor. */
  threads?: number;
  /** The number of documents that may wait for a thread, and how long in milliseconds. */
  waiting?: number;
  waitMs?: number;
  /** The longest time in milliseconds that a thread may take for a document. */
  longestMs?: number;
  /** The time in milliseconds that a thread continues after all callers have left. */
  abandonedMs?: number;
}

/** Compiled: a thread that loads TypeScript needs twice the processor time. */
const WORKER = join(PROJECT_ROOT, 'dist/service/issuance/signing-worker.js');

/**
 * Megabytes of heap per thread. Without this limit garbage accumulates: signing four documents of 40 MB on
 * two threads takes 2.0 GB without it and 1.5 GB with it. Of the bodies of 50 MB that were tried, none needed
 * more than 896 (checking-pool.ts), because the characters of statements are bounded (prepare-document.ts). A
 * low limit is risky: if a large string does not fit, V8 ends the whole process instead of the thread.
 */
const HEAP_MEGABYTES = 1024;

/** At most 64 MB of small bodies. Larger bodies already wait before they are read. */
const MOST_WAITING = 1_000;
/** Few callers wait longer. */
const LONGEST_WAIT_MS = 60_000;

/**
 * How long a thread continues after all callers have left. Loading its replacement takes a second of
 * processor time, so ending it earlier would mostly cost more than it saves.
 */
const ABANDONED_MS = 1_000;

/** Far longer than the largest document takes. A thread that takes longer hangs. */
const LONGEST_SIGNING_MS = 5 * 60_000;

/** Far longer than loading takes on a busy machine. */
const LONGEST_LOADING_MS = 60_000;
const LOADING_POLL_MS = 10;

/**
 * Starts the threads. They warm up while the service starts to listen; a document that arrives earlier waits
 * for them. A thread that ends is replaced. The threads do not keep the process alive.
 *
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function createSigningPool(
  settings: PreparationSettings,
  {
    time,
    threads = availableParallelism(),
    waiting = MOST_WAITING,
    waitMs = LONGEST_WAIT_MS,
    longestMs = LONGEST_SIGNING_MS,
    abandonedMs = ABANDONED_MS,
  }: SigningPoolOptions,
) {
  await openIssuerKey(time, settings.issuerKey);
  const pool = new Piscina<SigningTask, PreparationOutcome>({
    filename: WORKER,
    minThreads: threads,
    maxThreads: threads,
    idleTimeout: Infinity,
    // A thread in Atomics.wait cannot do anything else. Waking it by message costs less than 0.1 ms.
    atomics: 'disabled',
    recordTiming: false,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES },
    workerData: settings,
    // The environment is empty, because a thread does not need the service's other secrets.
    env: {},
    argv: [],
    execArgv: [],
  });
  /** Aborts when no thread is left. */
  let alive = new AbortController();
  // An idle thread died. The pool replaces it; no request was using it.
  pool.on('error', () => undefined);
  // The pool does not replace a thread that ends before it is ready. Without this, waiting documents would
  // wait forever.
  pool.on('workerDestroy', () =>
    setImmediate(() => {
      if (pool.threads.length > 0) return;
      alive.abort(new Error('No thread could be started.'));
      alive = new AbortController();
    }),
  );
  const loaded = new Set<number>();
  const { issuerKey } = settings;
  pool.on('message', (message: ThreadMessage) => {
    if ('loadedThread' in message) loaded.add(message.loadedThread);
    else if ('module' in issuerKey) openModule(time, issuerKey.module).connect(message.modulePort);
  });
  // The pool's own queue has no time limit.
  const busy = 'Too many documents are being signed: send it again later.';
  const semaphore = createSemaphore(time, { permits: threads, waiting, waitMs }, busy);
  let isDestroyed = false;
  return {
    /**
     * Transfers the body to the next free thread. The caller must not use it afterwards.
     *
     * After `left` aborts, a document without a thread is not started. One that has a thread is given up,
     * unless it is nearly done.
     *
     * @throws BusyError when too many documents wait, or one waits too long; SigningError SIGNING_WORKER_LOST
     *   (retryable) when the thread ended before it answered, or took too long; otherwise any error of
     *   preparing.
     */
    async prepare(
      preparation: Preparation,
      left = new AbortController().signal,
    ): ReturnType<PrepareDocument> {
      const release = await semaphore.acquire(left);
      try {
        if (isDestroyed) throw lost(new Error('The pool has ended.'));
        left.throwIfAborted();
        const outcome = await answerOf(pool, preparation, {
          time,
          left,
          longestMs,
          abandonedMs,
          alive: alive.signal,
        });
        if ('error' in outcome) throw fromTransferredError(outcome.error);
        return outcome.prepared;
      } finally {
        release();
      }
    },
    figures(): SigningFigures {
      const { held: busy, waiting: count } = semaphore.figures();
      return { waiting: count, busy, threads: pool.threads.length };
    },
    /** Ends the threads. Their documents fail with SIGNING_WORKER_LOST. */
    async destroy(): Promise<void> {
      isDestroyed = true;
      await allLoaded(time, pool, loaded);
      await pool.destroy();
    },
  };
}

/**
 * Waits until all threads have loaded. Node.js 20 ends the whole process when a thread is terminated while it
 * requires an ES module: "IsGraphAsync must be used on an instantiated module".
 */
async function allLoaded(
  time: Time,
  pool: { threads: readonly Worker[] },
  loaded: Set<number>,
): Promise<void> {
  const deadline = time.elapsed() + LONGEST_LOADING_MS;
  // The id of a thread that has ended is -1.
  const isLoading = ({ threadId }: Worker): boolean => threadId >= 0 && !loaded.has(threadId);
  while (pool.threads.some(isLoading) && time.elapsed() < deadline) await pause(time, LOADING_POLL_MS);
}

/** When a task is given up. */
interface Limits {
  time: Time;
  left: AbortSignal;
  longestMs: number;
  abandonedMs: number;
}

async function answerOf(
  pool: Piscina<SigningTask, PreparationOutcome>,
  preparation: Preparation,
  limits: Limits & { alive: AbortSignal },
): Promise<PreparationOutcome> {
  const { left, alive } = limits;
  const begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const task = { ...preparation, body: withBufferOfItsOwn(preparation.body), begun };
  const { end, cancel } = endInTime(limits, begun);
  try {
    const options = { transferList: [task.body.buffer], signal: end };
    return await untilAborted(alive, pool.run(task, options));
  } catch (cause) {
    throw end.aborted && left.aborted ? (left.reason as Error) : lost(cause);
  } finally {
    cancel();
  }
}

/**
 * Signals when to terminate the thread of a task that is abandoned or takes too long. A thread that has not
 * begun its task may still be loading, and terminating it then would end the process.
 */
function endInTime(
  { time, left, longestMs, abandonedMs }: Limits,
  begun: Int32Array,
): { end: AbortSignal; cancel: () => void } {
  const controller = new AbortController();
  let cancelEnd = (): void => undefined;
  const abandon = (): void => {
    cancelEnd();
    const hasBegun = Atomics.load(begun, 0) === 1;
    cancelEnd = time.later(abandonedMs, () => (hasBegun ? controller.abort() : abandon()));
  };
  left.addEventListener('abort', abandon, { once: true });
  const cancelLimit = time.later(longestMs, abandon);
  const cancel = (): void => {
    left.removeEventListener('abort', abandon);
    cancelLimit();
    cancelEnd();
  };
  return { end: controller.signal, cancel };
}

/** Copies a small Buffer, because it shares its memory with others and a transfer would take that too. */
function withBufferOfItsOwn(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

function lost(cause: unknown): SigningError {
  const remedy = 'Nothing was minted: send the request again.';
  const message = `The thread that signed the document ended before it was done. ${remedy}`;
  return new SigningError('SIGNING_WORKER_LOST', message, { cause, remedy, retryable: true });
}
