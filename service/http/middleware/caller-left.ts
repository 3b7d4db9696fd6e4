import type { Middleware } from 'koa';
import { CallerLeftError } from '../../base/errors';

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
