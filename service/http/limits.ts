import type { ServerResponse } from 'node:http';
import type { Context, Middleware } from 'koa';
import { BusyError, CallerLeftError, TooOftenError } from '../base/errors';
import { createSemaphore, type SemaphoreOptions } from '../base/semaphore';
import type { Time } from '../base/time';
import type { RequestState } from './request-log';
import { aborted, type LeastRate, mostBytes, SMALL_BYTES } from './read-body';
import { networkOf } from './wrong-keys';

/** Larger bodies take seconds, and hundreds of megabytes, to be worked on. */
const LARGE_BYTES = 1024 * 1024;

const LARGE: SemaphoreOptions = { permits: 2, waiting: 100, waitMs: 30_000 };

/**
 * The signing threads never wait for bodies with so many. Six hundred bodies of 1 MB took 1.7 GB without a
 * bound.
 */
const MEDIUM: SemaphoreOptions = { permits: 32, waiting: 1_000, waitMs: 30_000 };

/** Limits for the bodies that are processed at once. Missing values have defaults. */
export interface BodyLimitsOptions {
  /** For bodies of more than 1 MB, of unknown length, or compressed. */
  large?: Partial<SemaphoreOptions> | undefined;
  /** For bodies of more than 64 KB. */
  medium?: Partial<SemaphoreOptions> | undefined;
  /** The lowest accepted speed of bodies. */
  least?: LeastRate | undefined;
}

type CallerContext = Context & { state: Pick<RequestState, 'left' | 'role' | 'holder'> };

/**
 * Waits until the body of a request may be processed, and resolves to a function that releases its permit,
 * which may be called more than once.
 */
export type PermitBody = (ctx: CallerContext) => Promise<() => void>;

/**
 * Limits the number of bodies that are processed at once, which bounds memory: few large ones, and some more
 * medium ones, which do not wait for the large ones. Other requests wait before any of their body is read, so
 * the operating system slows their callers down. A caller who waits too long, or finds too many waiting, is
 * answered 503.
 */
export function limitBodies(time: Time, options: BodyLimitsOptions = {}): PermitBody {
  const busy = 'Too many large documents at once: send it again later.';
  const large = createSemaphore(time, { ...LARGE, ...options.large }, busy);
  const medium = createSemaphore(time, { ...MEDIUM, ...options.medium }, busy);
  return async (ctx) => {
    const bytes = mostBytes(ctx);
    if (bytes <= SMALL_BYTES) return () => undefined;
    const { left } = ctx.state;
    return (bytes > LARGE_BYTES ? large : medium).acquire(left).catch((error: unknown) => {
      throw left.aborted ? aborted() : error;
    });
  };
}

const RETRY_AFTER_MS = 10_000;

/** Lets a request wait for its answer, or refuses it. */
export type LimitCaller = (ctx: CallerContext) => void;

/**
 * Refuses requests above the limit with 503, before their bodies are read, and those of one caller above its
 * part of it with 429. While the chain makes no blocks, each POST /create waits for minutes, and those who
 * fetch events wait for the next one. Without a limit such requests would take all connections, also those of
 * GET /health, and a supervisor would consider the service dead.
 *
 * @param mostOfOne those of one caller, who is known by the network and the key.
 */
export function limitCallers(most: number, mostOfOne = most): LimitCaller {
  const callers = new Map<ServerResponse, string>();
  return (ctx) => {
    const { res, req, state } = ctx;
    state.left.throwIfAborted();
    if (callers.size >= most)
      throw new BusyError('Too many requests wait: send it again later.', RETRY_AFTER_MS);
    // Anybody can be a holder who has a wallet: all of them together are one caller.
    const caller = state.role === 'holder' ? 'holders' : `${networkOf(req)} ${state.role}`;
    if ([...callers.values()].filter((other) => other === caller).length >= mostOfOne) {
      const message = `${mostOfOne} requests of this caller wait already: send it again later.`;
      throw new TooOftenError('WAITS_TOO_MANY', message, { retryAfterMs: RETRY_AFTER_MS });
    }
    callers.set(res, caller);
    // The connection may end before the answer is sent: the document may be issued all the same.
    const end = (): void => {
      req.socket.off('close', end);
      callers.delete(res);
    };
    res.once('close', end);
    req.socket.once('close', end);
  };
}

/** Detects that the caller closes the connection, so that its request can be given up. */
export const callerLeft: Middleware<RequestState> = async (ctx, next) => {
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
