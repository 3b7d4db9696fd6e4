import { readFileSync } from 'node:fs';

/** The settings that decide how many descriptors the service needs. */
interface Needs {
  signingThreads: number;
  registries: readonly { webhook: { maxConcurrentDeliveries: number } | undefined }[];
}

/** Descriptors of the database, files, the standard streams and Node.js itself, with a reserve. */
const OF_THE_PROCESS = 48;
const OF_A_THREAD = 4;
/** Descriptors of the connections to one registry's node. */
const OF_A_REGISTRY = 16;
const LEAST = 16;
/** More connections would take memory that requests need. */
const MOST = 10_000;

/**
 * The number of allowed connections, so that deliveries, the database and nodes never lack a descriptor. A
 * request opens a connection to the node, so half of the remaining descriptors is reserved for those.
 *
 * @param openFiles the number of descriptors that the process may have.
 */
export function connectionsFor({ signingThreads, registries }: Needs, openFiles: number): number {
  const eventDelivery = registries.map(
    ({ webhook }) => OF_A_REGISTRY + (webhook?.maxConcurrentDeliveries ?? 0),
  );
  const own = eventDelivery.reduce((sum, one) => sum + one, OF_THE_PROCESS + signingThreads * OF_A_THREAD);
  return Math.min(Math.max(Math.floor((openFiles - own) / 2), LEAST), MOST);
}

/** Connections reserved for requests that create no document, such as GET /health. */
const OF_OTHER_REQUESTS = 8;

/** The highest number of concurrent requests that create documents. */
export function creatingAtOnce(connections: number): number {
  return connections - OF_OTHER_REQUESTS;
}

/** The lowest common limit, for systems that do not report theirs. */
const USUAL_OPEN_FILES = 1_024;

/**
 * The number of descriptors that this process may have, as in `ulimit -n`. Node.js raises the soft limit to
 * the hard limit when it starts.
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
