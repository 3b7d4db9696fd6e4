import type { Middleware } from 'koa';
import { BusyError } from '../../errors';
import { createPlaces, type Places, type PlacesOptions } from '../../places';
import { mostBytes, SMALL_BYTES } from '../body-limit';
import type { LeastRate } from '../read-body';
import type { CallerState } from './caller-left';
import { HttpError } from './errors';

/** Larger bodies take seconds, and hundreds of megabytes, to be worked on. */
const LARGE_BYTES = 1024 * 1024;

const LARGE: PlacesOptions = { places: 2, waiting: 100, waitMs: 30_000 };

/**
 * Enough for the threads never to wait for bodies. Six hundred of 1 MB at once took 1.7 GB without a bound.
 */
const MEDIUM: PlacesOptions = { places: 32, waiting: 1_000, waitMs: 30_000 };

/**
 * A body brings at least so much, so that a small one is complete within ten seconds. Otherwise two bodies of
 * one byte keep all others out for five minutes.
 */
const LEAST: LeastRate = { bytes: 64 * 1024, withinMs: 10_000 };

/** What the middleware leaves for the route. */
export interface AdmissionState {
  /** How fast the body has to come. */
  least: LeastRate;
  /**
   * Lets the next body in before this one is answered: for when nothing large is held any more. May be called
   * more than once.
   */
  leave: () => void;
}

/** How many are let in at once; what is not given is as it is by default. */
export interface AdmissionOptions {
  /** Of more than 1 MB, of unknown length, or compressed. */
  large?: Partial<PlacesOptions> | undefined;
  /** Of more than 64 KB. */
  medium?: Partial<PlacesOptions> | undefined;
  /** Of every size. */
  least?: LeastRate | undefined;
}

/**
 * Lets a bounded number of bodies in at once, so that memory stays bounded: few large ones, some more of
 * those in between, which do not wait for the large ones. The others wait before any of their body is read:
 * the operating system lets their callers wait. Who waits for too long, or finds too many waiting, is
 * answered 503; whose body hardly comes is answered 408, and loses its place.
 */
export function admission(options: AdmissionOptions = {}): Middleware<AdmissionState & CallerState> {
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
    const place = await enter(bytes > LARGE_BYTES ? large : medium, ctx.state.left);
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
  waitMs: number;
}

function queueOf(options: PlacesOptions): Queue {
  return { places: createPlaces(options), waitMs: options.waitMs };
}

async function enter({ places, waitMs }: Queue, left: AbortSignal): Promise<() => void> {
  const place = await places.enter(left);
  if (place === 'left') throw new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
  if (place !== 'busy') return place;
  throw new BusyError('Too many large documents at once: send it again later.', waitMs);
}
