import { readFileSync } from 'node:fs';

/** The settings that decide how many descriptors the service needs. */
interface Needs {
  signingThreads: number;
  registries: readonly { webhook: { maxConcurrentDeliveries: number } | undefined }[];
}

/** The database, files, the standard streams and Node.js itself; with some to spare. */
const OF_THE_PROCESS = 48;
const OF_A_THREAD = 4;
/** Connections to a registry's node. */
const OF_A_REGISTRY = 16;
const LEAST = 16;
/** More would need memory that their requests have to have. */
const MOST = 10_000;

/**
 * How many callers may be connected at once, so that deliveries, database and node never lack a descriptor. A
 * request asks the node over a connection of its own: half of what is left is for those.
 *
 * @param openFiles how many descriptors the process may have.
 */
export function connectionsFor({ signingThreads, registries }: Needs, openFiles: number): number {
  const eventDelivery = registries.map(
    ({ webhook }) => OF_A_REGISTRY + (webhook?.maxConcurrentDeliveries ?? 0),
  );
  const own = eventDelivery.reduce((sum, one) => sum + one, OF_THE_PROCESS + signingThreads * OF_A_THREAD);
  return Math.min(Math.max(Math.floor((openFiles - own) / 2), LEAST), MOST);
}

/** Connections that callers who create documents leave to all other requests, such as GET /health. */
const OF_OTHER_REQUESTS = 8;

/** How many may create documents at once, of those who may be connected. */
export function creatingAtOnce(connections: number): number {
  return connections - OF_OTHER_REQUESTS;
}

/** What systems that do not tell allow at the least. */
const USUAL_OPEN_FILES = 1_024;

/**
 * How many descriptors this process may have, as `ulimit -n` says: Node.js raises the soft limit to the hard
 * one when it starts.
 */
export function readOpenFilesLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const [, soft] = /^Max open files +(\S+)/m.exec(limits) ?? [];
    return soft === 'unlimited' ? Infinity : Number(soft ?? USUAL_OPEN_FILES);
  } catch {
    return USUAL_OPEN_FILES;
  }
}
