import { parentPort, threadId, workerData } from 'node:worker_threads';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { createDocumentPreparer, type PreparationSettings } from './prepare-document';
import type { Preparation, PreparedDocument, PrepareDocument } from './preparation';
import { toTransferredError, type TransferredError } from './transferred-error';

/** What a thread of the signing pool answers: errors of the service would lose their class on the way. */
export type PreparationOutcome = { prepared: PreparedDocument } | { error: TransferredError };

/** What a thread of the signing pool is given. */
export interface SigningTask extends Preparation {
  /** The thread writes 1 into it when it begins: it has loaded by then. */
  begun: Int32Array<SharedArrayBuffer>;
}

/**
 * Runs what a thread does first, so that no caller waits for it: loading, compiling, processing the contexts.
 */
const DRY_RUN = {
  credentialSubject: {
    type: ['BillOfLading'],
    scac: 'NONE',
    packages: [{ packagesDescription: 'none' }],
    attachments: [{ data: '', filename: 'none', mimeType: 'text/plain' }],
  },
  owner: '0x0000000000000000000000000000000000000001',
  holder: '0x0000000000000000000000000000000000000001',
  remarks: 'none',
};

/** What a thread says once, when all that it runs is loaded. */
export interface Loaded {
  loadedThread: number;
}

async function start(settings: PreparationSettings): Promise<(task: SigningTask) => Promise<unknown>> {
  const preparer = createDocumentPreparer(settings);
  // What is wrong is said to whoever asks for a document: a thread that fails at its start would be started
  // again and again.
  await preparer.then(runDry).catch(() => undefined);
  parentPort?.postMessage({ loadedThread: threadId } satisfies Loaded);
  return async (task) => {
    Atomics.store(task.begun, 0, 1);
    try {
      return moved(await (await preparer)(task));
    } catch (error) {
      return { error: toTransferredError(error) } satisfies PreparationOutcome;
    }
  };
}

async function runDry(prepare: PrepareDocument): Promise<void> {
  await prepare({
    documentType: 'BILL_OF_LADING',
    body: new TextEncoder().encode(JSON.stringify(DRY_RUN)),
    uuid: '00000000-0000-7000-8000-000000000000',
    issuedAt: 0,
  });
}

/** The document's bytes change hands and are not copied. */
function moved(prepared: PreparedDocument): unknown {
  const outcome: PreparationOutcome = { prepared };
  return move({ [valueSymbol]: outcome, [transferableSymbol]: prepared.document.buffer });
}

/** The pool waits for it, and calls what it resolves to. */
export default start(workerData as PreparationSettings);
