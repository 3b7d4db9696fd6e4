import { availableParallelism } from 'node:os';

/** Settings of a service that signs as it does by default: those of tests have one thread. */
export const ALL_THREADS = { SIGNING_THREADS: String(availableParallelism()) };
