import type { Middleware, Context } from 'koa';
import { BusyError, CallerLeftError } from '../../base/errors';
import { createSemaphore, type Semaphore, type SemaphoreOptions } from '../../base/semaphore';
import { mostBytes, SMALL_BYTES, type LeastRate } from '../read-body';
import { HttpError } from './errors';

/** Larger bodies take seconds, and hundreds of megabytes, to be worked on. */
const LARGE_BYTES = 1024 * 1024;

const LARGE: SemaphoreOptions = { permits: 2, waiting: 100, waitMs: 30_000 };

/**
 * The signing threads never wait for bodies with so many. Six hundred bodies of 1 MB took 1.7 GB without a
 * bound.
 */
const MEDIUM: SemaphoreOptions = { permits: 32, waiting: 1_000, waitMs: 30_000 };

/**
 * A body brings at least so much, so that a small one is complete within ten seconds. Otherwise two bodies of
 * one byte keep all others out for five minutes.
 */
export const LEAST: LeastRate = { bytes: 64 * 1024, withinMs: 10_000 };

/** State that the middleware sets for the route. */
export interface BodyLimitsState {
  /** Lowest accepted speed of the body. */
  least: LeastRate;
  /**
   * Releases the permit before the response, when the request holds no large data any more. May be called
   * more than once.
   */
  leave: () => void;
}

/** The middleware. */
export type LimitBodies = Middleware<BodyLimitsState & CallerState>;

/** How many bodies are processed at once. Missing values have defaults. */
export interface BodyLimitsOptions {
  /** For bodies of more than 1 MB, of unknown length, or compressed. */
  large?: Partial<SemaphoreOptions> | undefined;
  /** For bodies of more than 64 KB. */
  medium?: Partial<SemaphoreOptions> | undefined;
  /** For bodies of every size. */
  least?: LeastRate | undefined;
}

/**
 * Limits the number of bodies that are processed at once, which bounds memory: few large ones, and some more
 * medium ones, which do not wait for the large ones. Other requests wait before any of their body is read, so
 * the operating system slows their callers down. A caller who waits too long, or finds too many waiting, is
 * answered 503. A body that arrives too slowly is answered 408 and loses its permit.
 */
export function limitBodies(options: BodyLimitsOptions = {}): LimitBodies {
  const large = queueOf({ ...LARGE, ...options.large });
  const medium = queueOf({ ...MEDIUM, ...options.medium });
  return async (ctx, next) => {
    const bytes = mostBytes(ctx);
    ctx.state.leave = () => undefined;
    ctx.state.least = options.least ?? LEAST;
    if (bytes <= SMALL_BYTES) {
      await next();
      return;
    }
    const release = await permitOf(bytes > LARGE_BYTES ? large : medium, ctx.state.left);
    ctx.state.leave = release;
    try {
      await next();
    } finally {
      release();
    }
  };
}

interface Queue {
  semaphore: Semaphore;
  waitMs: number;
}

function queueOf(options: SemaphoreOptions): Queue {
  return { semaphore: createSemaphore(options), waitMs: options.waitMs };
}

async function permitOf({ semaphore, waitMs }: Queue, left: AbortSignal): Promise<() => void> {
  const acquired = await semaphore.acquire(left);
  if (acquired === 'left') throw new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
  if (acquired !== 'busy') return acquired;
  throw new BusyError('Too many large documents at once: send it again later.', waitMs);
}

const RETRY_AFTER_MS = 10_000;

/**
 * Answers 503 to requests above the limit before reading their bodies. While the chain makes no blocks, each
 * request waits for minutes. Without a limit such requests would take all connections, also those of GET
 * /health, and a supervisor would consider the service dead.
 */
export function callersAtOnce(most: number): Middleware<CallerState> {
  const callers = createSemaphore({ permits: most, waiting: 0, waitMs: 0 });
  return async (ctx, next) => {
    const leave = await callers.acquire(ctx.state.left);
    if (leave === 'left') throw new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
    if (leave === 'busy')
      throw new BusyError('Too many documents at once: send it again later.', RETRY_AFTER_MS);
    onEnd(ctx, leave);
    await next();
  };
}

/**
 * Calls it when the answer has been sent, or the connection has ended before: the document may be issued all
 * the same.
 */
function onEnd({ res, req: { socket } }: Context, leave: () => void): void {
  const end = (): void => {
    socket.off('close', end);
    leave();
  };
  res.once('close', end);
  socket.once('close', end);
}

/** State that the middleware sets for later ones. */
export interface CallerState {
  /** Aborts with a CallerLeftError when the connection ends before the request is answered. */
  left: AbortSignal;
}

/** Detects that the caller closes the connection, so that its request can be given up. */
export const callerLeft: Middleware<CallerState> = async (ctx, next) => {
  const { socket } = ctx.req;
  const left = new AbortController();
  ctx.state.left = left.signal;
  const leave = (): void => left.abort(new CallerLeftError());
  if (socket.destroyed) leave();
  // The socket's event is used because, with several requests on one connection, only the first one's
  // response emits `close`.
  socket.once('close', leave);
  // One connection may carry any number of requests before the first is answered.
  socket.setMaxListeners(0);
  try {
    await next();
  } finally {
    socket.off('close', leave);
  }
};
