import type { Middleware } from 'koa';
import { CallerLeftError } from '../../base/errors';

/** What the middleware leaves for those that come after it. */
export interface CallerState {
  /** Aborts with a CallerLeftError when the connection ends while the request is worked on. */
  left: AbortSignal;
}

/** Notices that the caller closes the connection: what it asked for need not be done then. */
export const callerLeft: Middleware<CallerState> = async (ctx, next) => {
  const { socket } = ctx.req;
  const left = new AbortController();
  ctx.state.left = left.signal;
  const leave = (): void => left.abort(new CallerLeftError());
  if (socket.destroyed) leave();
  // Not of the response: of several requests on one connection only the first one's response is told.
  socket.once('close', leave);
  // Any number of requests may come on one connection before the first is answered.
  socket.setMaxListeners(0);
  try {
    await next();
  } finally {
    socket.off('close', leave);
  }
};
