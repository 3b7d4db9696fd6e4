import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../base/logger';

/** The highest number of connections, and the log that reports when it is reached. */
export interface ConnectionBound {
  most: number;
  logger: Logger;
}

const TELL_EVERY_MS = 60_000;

/**
 * Keeps the server from using all file descriptors of the process, because event delivery needs some too.
 * When the limit is reached, a new connection replaces the one that has been idle the longest. If none is
 * idle, the new connection is closed.
 */
export function boundConnections(server: Server, { most, logger }: ConnectionBound): void {
  /** In the order in which they became idle. */
  const idle = new Set<Socket>();
  /** The number of open requests of each connection that has any. */
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
      'connections are refused: all allowed connections wait for answers',
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
