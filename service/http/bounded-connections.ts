import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../base/logger';

/** The most connections at once, and the log that says when it is reached. */
export interface ConnectionBound {
  most: number;
  logger: Logger;
}

const TELL_EVERY_MS = 60_000;

/**
 * Keeps a server from taking all descriptors of the process, which the other side of the service needs too. A
 * connection without a request under way makes room for a new one: the one that has been without for the
 * longest time goes first. When every one has a request under way, the new one is closed.
 */
export function boundConnections(server: Server, { most, logger }: ConnectionBound): void {
  /** In the order in which they became idle. */
  const idle = new Set<Socket>();
  /** Requests under way, of each connection that has some. */
  const underWay = new Map<Socket, number>();
  let toldAt = -Infinity;

  function forget(socket: Socket): void {
    idle.delete(socket);
    underWay.delete(socket);
  }

  server.on('connection', (socket: Socket) => {
    idle.add(socket);
    socket.once('close', () => forget(socket));
    if (idle.size + underWay.size <= most) return;
    const [longest = socket] = idle;
    forget(longest);
    longest.destroy();
    if (longest !== socket || performance.now() - toldAt < TELL_EVERY_MS) return;
    toldAt = performance.now();
    const remedy = 'Let the process open more files (`ulimit -n`).';
    logger.warn(
      { connections: most, remedy },
      'connections are refused: all that there may be wait for answers',
    );
  });

  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket);
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const others = (underWay.get(socket) ?? 1) - 1;
      if (others > 0) return void underWay.set(socket, others);
      forget(socket);
      if (!socket.destroyed) idle.add(socket);
    });
  });
}
