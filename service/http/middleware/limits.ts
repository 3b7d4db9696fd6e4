import type { Middleware } from 'koa';
import { BusyError, CallerLeftError } from '../../base/errors';
import { createSemaphore, type SemaphoreOptions } from '../../base/semaphore';
import type { Time } from '../../base/time';
import { aborted, LEAST, mostBytes, SMALL_BYTES, type LeastRate } from '../read-body';

/** Larger bodies take seconds, and hundreds of megabytes, to be worked on. */
const LARGE_BYTES = 1024 * 1024;

const LARGE: SemaphoreOptions = { permits: 2, waiting: 100, waitMs: 30_000 };

/**
 * The signing threads never wait for bodies with so many. Six hundred bodies of 1 MB took 1.7 GB without a
 * bound.
 */
const MEDIUM: SemaphoreOptions = { permits: 32, waiting: 1_000, waitMs: 30_000 };

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
export function limitBodies(
  time: Time,
  { least = LEAST, ...options }: BodyLimitsOptions = {},
): Middleware<BodyLimitsState & CallerState> {
  const large = permits(time, 'large documents', { ...LARGE, ...options.large });
  const medium = permits(time, 'large documents', { ...MEDIUM, ...options.medium });
  return async (ctx, next) => {
    const bytes = mostBytes(ctx);
    const queue = bytes > LARGE_BYTES ? large : medium;
    const release = bytes <= SMALL_BYTES ? () => undefined : await queue(ctx.state.left);
    Object.assign(ctx.state, { least, leave: release });
    try {
      await next();
    } finally {
      release();
    }
  };
}

/** Creates a function that waits for a permit, and resolves to one that releases it. */
function permits(
  time: Time,
  what: string,
  options: SemaphoreOptions,
  retryAfterMs = options.waitMs,
): (left: AbortSignal) => Promise<() => void> {
  const semaphore = createSemaphore(time, options, `Too many ${what} at once: send it again later.`);
  return async (left) =>
    semaphore.acquire(left).catch((error: unknown) => {
      if (left.aborted) throw aborted();
      throw error instanceof BusyError ? new BusyError(error.message, retryAfterMs) : error;
    });
}

const RETRY_AFTER_MS = 10_000;

/**
 * Answers 503 to requests above the limit before reading their bodies. While the chain makes no blocks, each
 * request waits for minutes. Without a limit such requests would take all connections, also those of GET
 * /health, and a supervisor would consider the service dead.
 */
export function callersAtOnce(time: Time, most: number): Middleware<CallerState> {
  const permit = permits(time, 'documents', { permits: most, waiting: 0, waitMs: 0 }, RETRY_AFTER_MS);
  return async (ctx, next) => {
    const { res, req, state } = ctx;
    const leave = await permit(state.left);
    // The connection may end before the answer is sent: the document may be issued all the same.
    const end = (): void => {
      req.socket.off('close', end);
      leave();
    };
    res.once('close', end);
    req.socket.once('close', end);
    await next();
  };
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
