import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import Piscina from 'piscina';
import { PROJECT_ROOT } from '../base/project-root';
import { BusyError, ServiceError } from '../base/errors';
import { createSemaphore } from '../base/semaphore';
import { fromTransferredError, toTransferredError } from '../issuance/transferred-error';
import type { TokenState } from '../registry/read-token-state';
import type { NetworkNode } from '../registry/registry-contracts';
import type { TokenLocation } from '../token/token-location';
import type { JsonObject } from '../issuance/credential';
import type { Validation } from '../validation/problems';
import type { CheckingOutcome, CheckingSettings, CheckingTask, TokenAnswer } from './checking-thread';
import type { VerifiedView } from './views';

/** Threads that check what callers send. Rubbish may take long there, and holds nothing else up. */
export type CheckingPool = ReturnType<typeof createCheckingPool>;

const WORKER = join(PROJECT_ROOT, 'dist/service/answers/checking-thread.js');
const THREADS = 3;
const MOST_WAITING = 20;
const BUSY = 'Too many checks at once: try again later.';
/** A thread stays free for what is typed in the console, however long the others take. */
const LONG_CHECKS = { permits: 1, waiting: MOST_WAITING, waitMs: 30_000 };
/** A thread that nobody needs ends. Another starts in half a second. */
const IDLE_MS = 60_000;
/** Verifying the most statements that a document may have takes half a minute. */
const LONGEST_MS = 60_000;
/** Two answers of a node for each block of 300, and the proofs of as much as may be in them. */
const LONGEST_EVIDENCE_MS = 180_000;
const HEAP_MEGABYTES = 512;
const REMEDY = 'Try it again, or use `npx tdoc`, which has no limit.';

/**
 * The threads start when they are first needed. Bytes are transferred: the caller must not use them
 * afterwards.
 */
export function createCheckingPool(settings: CheckingSettings) {
  const pool = new Piscina<CheckingTask, CheckingOutcome>({
    filename: WORKER,
    minThreads: 0,
    maxThreads: THREADS,
    maxQueue: MOST_WAITING,
    idleTimeout: IDLE_MS,
    recordTiming: false,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES },
    workerData: settings,
    env: {},
    argv: [],
    execArgv: [],
  });
  pool.on('error', () => undefined);
  const { hold: inTurn } = createSemaphore(LONG_CHECKS, BUSY);
  // It waits for nodes most of the time.
  const { hold: inTurnOfEvidence } = createSemaphore(LONG_CHECKS, BUSY);

  async function run(task: CheckingTask, transferList: Transferred, left?: AbortSignal): Promise<unknown> {
    const longestMs = task.kind === 'evidence' ? LONGEST_EVIDENCE_MS : LONGEST_MS;
    if (pool.queueSize >= MOST_WAITING) throw new BusyError(BUSY, LONG_CHECKS.waitMs);
    const late = AbortSignal.timeout(longestMs);
    const signal = left ? AbortSignal.any([late, left]) : late;
    const outcome = await pool.run(task, { signal, transferList }).catch((cause: unknown) => {
      left?.throwIfAborted();
      const message = late.aborted
        ? `The check took longer than ${longestMs / 1_000} s, and was ended.`
        : 'The check ended early: its thread was lost.';
      throw new ServiceError('CHECK_ENDED', message, { cause, remedy: REMEDY });
    });
    if ('error' in outcome) throw fromTransferredError(outcome.error);
    return outcome.result;
  }

  return {
    validate: async (bytes: Uint8Array<ArrayBuffer>) =>
      (await run({ kind: 'validate', bytes }, [bytes.buffer])) as Validation,
    verify: (
      bytes: Uint8Array<ArrayBuffer>,
      left: AbortSignal,
      readToken: (location: TokenLocation) => Promise<TokenState>,
    ) =>
      inTurn(left, async () => {
        const { port1, port2 } = new MessageChannel();
        port1.on('message', (location: TokenLocation) => {
          void readToken(location)
            .then(
              (state): TokenAnswer => ({ state }),
              (error: unknown): TokenAnswer => ({ error: toTransferredError(error) }),
            )
            .then((answer) => port1.postMessage(answer));
        });
        try {
          const task: CheckingTask = { kind: 'verify', bytes, port: port2 };
          return (await run(task, [bytes.buffer, port2], left)) as VerifiedView;
        } finally {
          port1.close();
        }
      }),
    derive: (bytes: Uint8Array<ArrayBuffer>, left: AbortSignal) =>
      inTurn(left, async () => {
        const derived = await run({ kind: 'derive', bytes }, [bytes.buffer], left);
        return derived as { verifiableCredential: JsonObject };
      }),
    /** The bytes of an evidence file. */
    evidence: (node: NetworkNode, location: TokenLocation, left: AbortSignal) =>
      inTurnOfEvidence(left, async () => {
        const task: CheckingTask = { kind: 'evidence', node, location };
        const { buffer } = (await run(task, [], left)) as Uint8Array<ArrayBuffer>;
        return Buffer.from(buffer);
      }),
    stop: () => pool.destroy(),
  };
}

type Transferred = NonNullable<NonNullable<Parameters<Piscina['run']>[1]>['transferList']>;
