import { availableParallelism } from 'node:os';
import { extname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import Piscina from 'piscina';
import { BusyError, SigningError } from '../base/errors';
import { createSemaphore } from '../base/semaphore';
import { createIssuerSigner } from './issuer-signer';
import type { PreparationSettings } from './prepare-document';
import type { Preparation, PrepareForCallers } from './preparation';
import type { Loaded, PreparationOutcome, SigningTask } from './signing-worker';
import { fromTransferredError } from './transferred-error';

/** How much is being signed. */
export interface SigningFigures {
  /** Documents that wait for a thread. */
  waiting: number;
  /** Documents that have one. */
  busy: number;
  threads: number;
}

/** Threads that prepare documents, one at a time each, in the order of asking. */
export interface SigningPool {
  /**
   * Hands the body over to the next thread that is free: afterwards, here, it is empty.
   *
   * When nobody waits any more, what has no thread yet is not begun. What has one is given up unless it is
   * soon done.
   *
   * @throws BusyError when too many wait, or for too long; SigningError SIGNING_WORKER_LOST (retryable) when
   * the thread ended before it answered; otherwise what preparing throws.
   */
  prepare: PrepareForCallers;
  figures(): SigningFigures;
  /** Ends the threads, and with SIGNING_WORKER_LOST whatever they were at. */
  destroy(): Promise<void>;
}

/** What tests choose. */
export interface SigningPoolOptions {
  /** One for each processor unless given. */
  threads?: number;
  /** How many documents may wait for a thread, and for how many milliseconds. */
  waiting?: number;
  waitMs?: number;
}

/**
 * Beside this file, and like it compiled or not: production runs `dist/` alone, and tests run the sources
 * they test, not what was built from them some time ago. Only then does a thread need ts-node, which the
 * process has set up for itself but not for its threads.
 */
const EXTENSION = extname(__filename);
const WORKER = join(__dirname, `signing-worker${EXTENSION}`);
const EXEC_ARGV = EXTENSION === '.ts' ? ['--require', 'ts-node/register/transpile-only'] : [];

/**
 * Megabytes of heap for each thread. Without it garbage gathers: 2.0 GB for the process while four documents
 * of 40 MB are signed by two threads, and 1.5 GB with it. A body of 50 MB with letters beyond Latin 1 needs
 * between 512 and 768. Not lower: where the string that does not fit is a large one, V8 ends not the thread
 * but the process.
 */
const HEAP_MEGABYTES = 1024;

/** 64 MB of bodies that nothing else keeps waiting; larger ones wait before they are read, too. */
const MOST_WAITING = 1_000;
/** Few callers wait for longer. */
const LONGEST_WAIT_MS = 60_000;

/**
 * How long a thread goes on for nobody. Its replacement takes a second of the processor to load: to end it
 * earlier would mostly cost more than it saves.
 */
const ABANDONED_MS = 1_000;

const LONGEST_LOADING_MS = 5_000;
const LOADING_POLL_MS = 10;

/**
 * Starts the threads. They warm up while the service starts to listen: a document that comes earlier waits
 * for them. A thread that ends is replaced. None keeps the process from ending.
 *
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function createSigningPool(
  settings: PreparationSettings,
  {
    threads = availableParallelism(),
    waiting = MOST_WAITING,
    waitMs = LONGEST_WAIT_MS,
  }: SigningPoolOptions = {},
): Promise<SigningPool> {
  await createIssuerSigner(settings.keyPair);
  const pool = new Piscina<SigningTask, PreparationOutcome>({
    filename: WORKER,
    minThreads: threads,
    maxThreads: threads,
    idleTimeout: Infinity,
    // A thread that sleeps in Atomics.wait does nothing else; waking one the usual way costs less than a
    // tenth of a millisecond.
    atomics: 'disabled',
    recordTiming: false,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES },
    workerData: settings,
    // Nothing of the service's own: a thread has no business with its other secrets.
    env: {},
    argv: [],
    execArgv: EXEC_ARGV,
  });
  const underWay = new Set<(cause: unknown) => void>();
  const giveUp = (cause: Error): void => underWay.forEach((reject) => reject(cause));
  // Of a thread that was at nothing: it is replaced, and nobody has lost anything.
  pool.on('error', () => undefined);
  // The pool does not replace a thread that ends before it is ready, and what waits would wait for good.
  pool.on('workerDestroy', () =>
    setImmediate(() => {
      if (pool.threads.length === 0) giveUp(new Error('No thread could be started.'));
    }),
  );
  const loaded = new Set<number>();
  pool.on('message', ({ loadedThread }: Loaded) => loaded.add(loadedThread));
  // The pool's own queue has no bound in time.
  const semaphore = createSemaphore({ permits: threads, waiting, waitMs });
  let isDestroyed = false;
  return {
    async prepare(preparation, left = new AbortController().signal) {
      const release = await semaphore.acquire(left);
      if (release === 'left') throw left.reason as Error;
      if (release === 'busy')
        throw new BusyError('Too many documents are being signed: send it again later.', waitMs);
      try {
        if (isDestroyed) throw lost(new Error('The pool has ended.'));
        left.throwIfAborted();
        const outcome = await answerOf(pool, preparation, left, underWay);
        if ('error' in outcome) throw fromTransferredError(outcome.error);
        return outcome.prepared;
      } finally {
        release();
      }
    },
    figures() {
      const { held: busy, waiting: count } = semaphore.figures();
      return { waiting: count, busy, threads: pool.threads.length };
    },
    async destroy() {
      isDestroyed = true;
      await allLoaded(pool, loaded);
      await pool.destroy();
    },
  };
}

/**
 * Node.js 20 ends the whole process when a thread is ended while it requires an ES module: "IsGraphAsync must
 * be used on an instantiated module".
 */
async function allLoaded(pool: { threads: readonly Worker[] }, loaded: Set<number>): Promise<void> {
  const deadline = performance.now() + LONGEST_LOADING_MS;
  // The id of a thread that has ended is -1.
  const isLoading = ({ threadId }: Worker): boolean => threadId >= 0 && !loaded.has(threadId);
  while (pool.threads.some(isLoading) && performance.now() < deadline) await sleep(LOADING_POLL_MS);
}

async function answerOf(
  pool: Piscina<SigningTask, PreparationOutcome>,
  preparation: Preparation,
  left: AbortSignal,
  underWay: Set<(cause: unknown) => void>,
): Promise<PreparationOutcome> {
  const begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const task = { ...preparation, body: withBufferOfItsOwn(preparation.body), begun };
  const { end, cancel } = endWhenAbandoned(left, begun);
  let giveUp: (cause: unknown) => void = () => undefined;
  const noThread = new Promise<never>((_, reject) => (giveUp = reject));
  underWay.add(giveUp);
  try {
    const options = { transferList: [task.body.buffer], signal: end };
    return await Promise.race([pool.run(task, options), noThread]);
  } catch (cause) {
    throw end.aborted ? (left.reason as Error) : lost(cause);
  } finally {
    cancel();
    underWay.delete(giveUp);
  }
}

/**
 * Says when to end the thread of a task that nobody waits for. While the task has not begun the thread is
 * left alone: it may be loading, and to end it then would end the process.
 */
function endWhenAbandoned(left: AbortSignal, begun: Int32Array): { end: AbortSignal; cancel: () => void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const abandon = (): void => {
    const hasBegun = Atomics.load(begun, 0) === 1;
    timer = setTimeout(() => (hasBegun ? controller.abort() : abandon()), ABANDONED_MS);
  };
  left.addEventListener('abort', abandon, { once: true });
  const cancel = (): void => {
    left.removeEventListener('abort', abandon);
    clearTimeout(timer);
  };
  return { end: controller.signal, cancel };
}

/** Small Buffers share memory with others, which must not be given away with them. */
function withBufferOfItsOwn(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

function lost(cause: unknown): SigningError {
  const remedy = 'Nothing was minted: send the request again.';
  const message = `The thread that signed the document ended before it was done. ${remedy}`;
  return new SigningError('SIGNING_WORKER_LOST', message, { cause, remedy, retryable: true });
}
