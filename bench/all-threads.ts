import { availableParallelism } from 'node:os';

/** Restores the service's default number of signing threads; tests use one. */
export const ALL_THREADS = { SIGNING_THREADS: String(availableParallelism()) };
