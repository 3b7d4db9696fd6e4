import type { Context, Middleware } from 'koa';
import { BusyError } from '../../base/errors';
import { createSemaphore } from '../../base/semaphore';
import type { CallerState } from './caller-left';
import { HttpError } from './errors';

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
