import { fork } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { Worker, type TransferListItem, type WorkerOptions } from 'node:worker_threads';
import { PROJECT_ROOT } from './project-root';
import { createSemaphore, type SemaphoreOptions } from './semaphore';
import { type Time, newDeferred, untilAborted } from './time';
import { sendTo, type FromWorker, type ToWorker, outcomeOf, resultOf, type Outcome } from './worker-tasks';

/** A thread or a process, as it was started. */
interface OpenWorker {
  /** `message`, `error` and `exit`. */
  events: EventEmitter & { unref(): void };
  /** Whether it may be ended. */
  isLoaded: boolean;
  send(this: void, message: ToWorker, moved: readonly TransferListItem[]): Promise<void>;
  kill(this: void): void;
}

/** Compiled: a thread that loads TypeScript needs twice the processor time. */
const PROGRAMS = join(PROJECT_ROOT, 'dist/service');

/**
 * Starts a thread, with an empty environment: it does not need the service's other secrets. Node.js 20 ends
 * the whole process when a thread is terminated while it requires an ES module: "IsGraphAsync must be used on
 * an instantiated module".
 */
export function openThread(program: string, options: WorkerOptions): OpenWorker {
  const thread = new Worker(join(PROGRAMS, program), { env: {}, argv: [], execArgv: [], ...options });
  return {
    events: thread,
    isLoaded: false,
    send: async (message, moved) => thread.postMessage(message, moved),
    kill: () => void thread.terminate(),
  };
}

/** Starts a process. @param env has none of the secrets of the service. */
export function openProcess(program: string, heapMegabytes: number, env: Record<string, string>): OpenWorker {
  const child = fork(join(PROGRAMS, program), {
    serialization: 'advanced',
    execArgv: [`--max-old-space-size=${heapMegabytes}`],
    env,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  child.channel?.unref();
  return {
    events: child,
    isLoaded: true,
    send: (message) => sendTo(child, message),
    kill: () => void child.kill('SIGKILL'),
  };
}

/** `permits`: the number of workers. */
export interface WorkersOptions<Task> extends SemaphoreOptions {
  time: Time;
  open: () => OpenWorker;
  /** The message for callers who wait too long, or find too many waiting. */
  busy: string;
  /** The error of a task whose worker ended. */
  lost: (cause: unknown) => Error;
  /** Milliseconds after which a worker that nobody needs ends. Without it, all are started now and kept. */
  idleMs?: number;
  /** Milliseconds that a worker may take for a task. */
  longestMs?: number;
  /** Milliseconds that it continues after these, or after the caller has left. Without it, to its end. */
  abandonedMs?: number;
  /** The memory of a task that a thread takes over instead of a copy. */
  movedOf?: (task: Task) => TransferListItem[];
  /** Answers a question that a thread asks. */
  answer?: (question: unknown) => Promise<unknown>;
}

/** Parts of a task, and the listener to the parts of its result. */
export interface TaskOptions {
  /** Sent before it, one by one. */
  parts?: readonly unknown[];
  onPart?: (part: unknown) => void;
}

/** Workers that do tasks in the order of the callers, each one at a time. */
export interface Workers<Task, Result> {
  /** @throws BusyError; the error of the task; what `lost` gives; the reason of `left`, once it has ended. */
  run(this: void, task: Task, left: AbortSignal, options?: TaskOptions): Promise<Result>;
  figures(this: void): { held: number; waiting: number; workers: number };
  /** Ends the workers. Their tasks are lost. */
  stop(this: void): Promise<void>;
}

interface Member extends OpenWorker {
  /** From now on it gets no task, although it ends later. */
  end: () => void;
  cancelIdle: () => void;
  /** The task that it does. */
  current:
    | ({ settle: (outcome: Outcome<unknown>) => void; lose: (cause: unknown) => void } & TaskOptions)
    | undefined;
}

/** Far longer than loading takes on a busy machine. */
const LONGEST_LOADING_MS = 60_000;

/** Replaces a worker that ends, unless it could not even load: then the next task starts another. */
export function createWorkers<Task, Result>(options: WorkersOptions<Task>): Workers<Task, Result> {
  const { time, open, busy, lost, idleMs, longestMs, abandonedMs, movedOf, answer, ...limits } = options;
  const semaphore = createSemaphore(time, limits, busy);
  const members = new Set<Member>();
  let isStopped = false;
  /** Resolves when a worker has loaded, is free again, or has ended. */
  let changed = newDeferred<void>();
  const change = (): void => {
    changed.resolve();
    changed = newDeferred();
  };

  function fill(): void {
    while (members.size < limits.permits) start();
  }

  function start(): void {
    const opened = open();
    const worker: Member = {
      ...opened,
      end: () => {
        opened.kill();
        forget(worker);
      },
      cancelIdle: () => undefined,
      current: undefined,
    };
    members.add(worker);
    const ended = (cause: unknown): void => {
      worker.current?.lose(cause);
      forget(worker);
    };
    const { events } = worker;
    events
      .on('message', (message: FromWorker) => hear(worker, message))
      .on('error', ended)
      .on('exit', (code, signal) => ended(new Error(`The worker ended with ${signal ?? code}.`)));
    // It keeps no process alive. A listener for messages would make a thread do so again.
    events.unref();
  }

  function forget(worker: Member): void {
    worker.cancelIdle();
    if (members.delete(worker) && idleMs === undefined && worker.isLoaded && !isStopped) fill();
    change();
  }

  function hear(worker: Member, message: FromWorker): void {
    if ('isLoaded' in message) {
      worker.isLoaded = true;
      change();
    } else if ('part' in message) worker.current?.onPart?.(message.part);
    else if (!('question' in message)) worker.current?.settle(message);
    else if (answer)
      void outcomeOf(answer(message.question)).then((outcome) => message.port.postMessage(outcome));
  }

  const free = (): Member | undefined =>
    [...members].find(({ isLoaded, current }) => isLoaded && current === undefined);

  async function run(task: Task, left: AbortSignal, given: TaskOptions): Promise<Result> {
    if (!isStopped) fill();
    let worker = free();
    while (worker === undefined && members.size > 0) {
      // A caller keeps the process alive, as workers do not.
      const cancel = time.later(LONGEST_LOADING_MS, change);
      await untilAborted(left, changed.promise).finally(cancel);
      worker = free();
    }
    if (worker === undefined || isStopped) throw lost(new Error('No worker is left.'));
    left.throwIfAborted();
    const { promise, resolve, reject } = newDeferred<Outcome<unknown>>();
    const lose = (cause: unknown): void => reject(left.aborted ? (left.reason as Error) : lost(cause));
    worker.cancelIdle();
    worker.current = { ...given, settle: resolve, lose };
    const { send, end } = worker;
    const ending = new Set<() => void>();
    const endSoon = (): void => {
      if (abandonedMs !== undefined) ending.add(time.later(abandonedMs, end));
    };
    if (longestMs !== undefined) ending.add(time.later(longestMs, endSoon));
    left.addEventListener('abort', endSoon, { once: true });
    const sending = async (): Promise<void> => {
      for (const part of given.parts ?? []) await send({ part }, []);
      await send({ task }, movedOf?.(task) ?? []);
    };
    // A process that could not be started has no channel.
    sending().catch(end);
    try {
      return resultOf(await promise) as Result;
    } finally {
      for (const cancel of ending) cancel();
      left.removeEventListener('abort', endSoon);
      worker.current = undefined;
      if (idleMs !== undefined && members.has(worker)) worker.cancelIdle = time.later(idleMs, end);
      change();
    }
  }

  if (idleMs === undefined) fill();
  return {
    run: (task, left, given = {}) => semaphore.hold(left, () => run(task, left, given)),
    figures: () => ({ ...semaphore.figures(), workers: members.size }),
    async stop() {
      isStopped = true;
      let isLate = false;
      const cancelLate = time.later(LONGEST_LOADING_MS, () => {
        isLate = true;
        change();
      });
      while (members.size > 0) {
        for (const { isLoaded, kill } of members) if (isLoaded || isLate) kill();
        await changed.promise;
      }
      cancelLate();
    },
  };
}
