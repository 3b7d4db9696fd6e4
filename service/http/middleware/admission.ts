import { availableParallelism } from 'node:os';
import type { Context, Middleware } from 'koa';
import { createPlaces, type PlacesOptions } from '../places';
import { HttpError } from './errors';

/** Bodies up to this size never wait. */
const LARGE_BYTES = 1024 * 1024;

const DEFAULTS: PlacesOptions = { places: availableParallelism(), waiting: 100, waitMs: 30_000 };

/** What the middleware leaves for the route. */
export interface AdmissionState {
  /** Lets the next large body in before this one is answered: for when nothing large is held any more. May be called more than once. */
  leave: () => void;
}

/**
 * Lets a bounded number of large bodies in at once, so that memory stays bounded; those of unknown length count as large. The others wait before any
 * of their body is read: the operating system lets their callers wait. Who waits for too long, or finds too many waiting, is answered 503.
 */
export function admission(options: Partial<PlacesOptions> = {}): Middleware<AdmissionState> {
  const all = { ...DEFAULTS, ...options };
  const places = createPlaces(all);
  return async (ctx, next) => {
    ctx.state.leave = () => undefined;
    if (!isLarge(ctx)) {
      await next();
      return;
    }
    const place = await places.enter(leftSignal(ctx));
    if (place === 'left') throw new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
    if (place === 'busy') {
      ctx.set('Retry-After', String(Math.max(1, Math.ceil(all.waitMs / 1000))));
      throw new HttpError(503, 'BUSY', 'Too many large documents at once: send it again later.');
    }
    ctx.state.leave = place;
    try {
      await next();
    } finally {
      place();
    }
  };
}

function isLarge({ req }: Context): boolean {
  const { 'content-length': length, 'content-encoding': encoding = 'identity' } = req.headers;
  if (encoding !== 'identity') return true;
  if (length === undefined) return req.headers['transfer-encoding'] !== undefined;
  return Number(length) > LARGE_BYTES;
}

/** Aborts when the connection ends. */
function leftSignal({ req, res }: Context): AbortSignal {
  const left = new AbortController();
  if (req.destroyed || res.destroyed) left.abort();
  res.once('close', () => left.abort());
  return left.signal;
}
