import { availableParallelism } from 'node:os';
import { SigningError } from '../base/errors';
import type { Time } from '../base/time';
import { createWorkers, openThread, type Workers } from '../base/workers';
import { openIssuerKey } from '../keys/issuer-key';
import { openModule } from '../keys/pkcs11';
import type { ModuleQuestion } from '../keys/pkcs11-thread';
import type { SignedDocument } from '../journal/issuance';
import type { Preparation, PreparationSettings } from './prepare-document';

/** `threads`: their number; default: one per processor. Tests set the limits. */
export interface SigningPoolOptions extends Partial<typeof LIMITS> {
  time: Time;
  threads?: number;
}

/** Times in milliseconds. */
const LIMITS = {
  /** Documents that may wait for a thread: at most 64 MB of small bodies. Larger ones wait to be read. */
  waiting: 1_000,
  /** Few callers wait longer. */
  waitMs: 60_000,
  /** Far longer than the largest document takes. A thread that takes longer hangs. */
  longestMs: 5 * 60_000,
  /**
   * How long a thread continues after all callers have left. Loading its replacement takes a second of
   * processor time, so ending it earlier would mostly cost more than it saves.
   */
  abandonedMs: 1_000,
};

/**
 * Megabytes of heap per thread. Without this limit garbage accumulates: signing four documents of 40 MB on
 * two threads takes 2.0 GB without it and 1.5 GB with it. Of the bodies of 50 MB that were tried, none needed
 * more than 896 (checking-pool.ts), because the characters of statements are bounded (prepare-document.ts). A
 * low limit is risky: if a large string does not fit, V8 ends the whole process instead of the thread.
 */
const HEAP_MEGABYTES = 1024;

/**
 * Starts threads that prepare documents in the order of the requests, each one at a time. They warm up while
 * the service starts to listen; a document that arrives earlier waits for them.
 *
 * @returns the threads. `run` transfers the body, unless others share its memory, and the caller must not use
 *   it afterwards. Its errors: BusyError when too many documents wait, or one waits too long; SigningError
 *   SIGNING_WORKER_LOST (retryable) when the thread ended before it answered, or took too long; any error of
 *   preparing.
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function createSigningPool(
  settings: PreparationSettings,
  { time, threads = availableParallelism(), ...limits }: SigningPoolOptions,
): Promise<Workers<Preparation, SignedDocument>> {
  const { issuerKey } = settings;
  const askModule = 'module' in issuerKey ? openModule(time, issuerKey.module) : undefined;
  await openIssuerKey(issuerKey, askModule);
  const resourceLimits = { maxOldGenerationSizeMb: HEAP_MEGABYTES };
  return createWorkers({
    ...{ ...LIMITS, ...limits, time, permits: threads, lost },
    busy: 'Too many documents are being signed: send it again later.',
    open: () => openThread('issuance/signing-worker.js', { workerData: settings, resourceLimits }),
    // A small Buffer shares its memory with others, which a transfer would take too.
    movedOf: ({ body: { buffer, byteLength } }) => (byteLength === buffer.byteLength ? [buffer] : []),
    ...(askModule && { answer: (question) => askModule(question as ModuleQuestion) }),
  });
}

function lost(cause: unknown): SigningError {
  const remedy = 'Nothing was minted: send the request again.';
  const message = `The thread that signed the document ended before it was done. ${remedy}`;
  return new SigningError('SIGNING_WORKER_LOST', message, { cause, remedy });
}
