import type { Context, Middleware } from 'koa';
import { createPlaces, type Places, type PlacesOptions } from '../../places';
import { contentEncodingOf } from '../read-body';
import { HttpError } from './errors';

/** Larger bodies take seconds, and hundreds of megabytes, to be worked on. */
const LARGE_BYTES = 1024 * 1024;

/** Bodies up to this size never wait: what else a request takes is as much as they are. */
const SMALL_BYTES = 64 * 1024;

const LARGE: PlacesOptions = { places: 2, waiting: 100, waitMs: 30_000 };

/** Enough for the threads never to wait for bodies. Six hundred of 1 MB at once took 1.7 GB without a bound. */
const MEDIUM: PlacesOptions = { places: 32, waiting: 1_000, waitMs: 30_000 };

/** What the middleware leaves for the route. */
export interface AdmissionState {
  /** Lets the next body in before this one is answered: for when nothing large is held any more. May be called more than once. */
  leave: () => void;
}

/** How many are let in at once; what is not given is as it is by default. */
export interface AdmissionOptions {
  /** Of more than 1 MB, of unknown length, or compressed. */
  large?: Partial<PlacesOptions> | undefined;
  /** Of more than 64 KB. */
  medium?: Partial<PlacesOptions> | undefined;
}

/**
 * Lets a bounded number of bodies in at once, so that memory stays bounded: few large ones, some more of those in between, which do not wait for the large
 * ones. The others wait before any of their body is read: the operating system lets their callers wait. Who waits for too long, or finds too many
 * waiting, is answered 503.
 */
export function admission(options: AdmissionOptions = {}): Middleware<AdmissionState> {
  const large = queueOf({ ...LARGE, ...options.large });
  const medium = queueOf({ ...MEDIUM, ...options.medium });
  return async (ctx, next) => {
    const bytes = mostBytes(ctx);
    ctx.state.leave = () => undefined;
    if (bytes <= SMALL_BYTES) {
      await next();
      return;
    }
    const place = await enter(ctx, bytes > LARGE_BYTES ? large : medium);
    ctx.state.leave = place;
    try {
      await next();
    } finally {
      place();
    }
  };
}

interface Queue {
  places: Places;
  retryAfterS: number;
}

function queueOf(options: PlacesOptions): Queue {
  return { places: createPlaces(options), retryAfterS: Math.max(1, Math.ceil(options.waitMs / 1000)) };
}

async function enter(ctx: Context, { places, retryAfterS }: Queue): Promise<() => void> {
  const place = await places.enter(leftSignal(ctx));
  if (place === 'left') throw new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
  if (place !== 'busy') return place;
  ctx.set('Retry-After', String(retryAfterS));
  throw new HttpError(503, 'BUSY', 'Too many large documents at once: send it again later.');
}

/** Of the body, as far as its headers tell. */
function mostBytes({ req }: Context): number {
  if (contentEncodingOf(req) !== 'identity') return Infinity;
  const { 'content-length': length } = req.headers;
  if (length === undefined) return req.headers['transfer-encoding'] === undefined ? 0 : Infinity;
  return Number(length);
}

/** Aborts when the connection ends. */
function leftSignal({ req, res }: Context): AbortSignal {
  const left = new AbortController();
  if (req.destroyed || res.destroyed) left.abort();
  res.once('close', () => left.abort());
  return left.signal;
}
