import { readFileSync } from 'node:fs';

/** The descriptors that the process needs besides connections follow from this. */
interface Needs {
  signingThreads: number;
  /** The number of followed registries. */
  registries: number;
}

/** The highest numbers of connections that may be open at once. */
export interface ConnectionLimits {
  /** Callers of the HTTP server. */
  callers: number;
  /** Deliveries to sinks, including connections that are kept alive. */
  deliveries: number;
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
 * Divides the descriptors of the process, so that none of its parts lacks one. Callers and deliveries get a
 * third each of those that the process does not need itself. The last third is for the connections that
 * requests open to the node.
 *
 * @param openFiles the number of descriptors that the process may have.
 */
export function connectionLimitsFor(
  { signingThreads, registries }: Needs,
  openFiles: number,
): ConnectionLimits {
  const own = OF_THE_PROCESS + signingThreads * OF_A_THREAD + registries * OF_A_REGISTRY;
  const third = Math.min(Math.max(Math.floor((openFiles - own) / 3), LEAST), MOST);
  return { callers: third, deliveries: third };
}

/** Connections reserved for requests that create no document, such as GET /health. */
const OF_OTHER_REQUESTS = 8;

/** The highest number of concurrent requests that create documents. */
export function creatingAtOnce(callers: number): number {
  return callers - OF_OTHER_REQUESTS;
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
