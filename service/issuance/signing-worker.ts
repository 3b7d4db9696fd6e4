import { MessageChannel, parentPort, threadId, workerData, type MessagePort } from 'node:worker_threads';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { systemTime } from '../base/time';
import { ModuleClient } from '../keys/pkcs11';
import {
  createDocumentPreparer,
  type Preparation,
  type PreparationSettings,
  type PreparedDocument,
  type PrepareDocument,
} from './prepare-document';
import { toTransferredError, type TransferredError } from './transferred-error';

/**
 * The answer of a signing thread. Errors are converted, because they would lose their class between threads.
 */
export type PreparationOutcome = { prepared: PreparedDocument } | { error: TransferredError };

/** The input of a signing thread. */
export interface SigningTask extends Preparation {
  /** The thread writes 1 when it begins, which means that it has loaded. */
  begun: Int32Array<SharedArrayBuffer>;
}

/**
 * A document for a dry run at the start of a thread, so that no caller waits for loading, compiling and
 * processing the contexts.
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

/** The messages of a thread: it has loaded; it asks the module of the issuer's key at this port. */
export type ThreadMessage = { loadedThread: number } | { modulePort: MessagePort };

async function start(settings: PreparationSettings): Promise<(task: SigningTask) => Promise<unknown>> {
  const client = 'module' in settings.issuerKey ? askModule() : undefined;
  const preparer = createDocumentPreparer(systemTime, settings, client);
  // An error here is reported to the next caller. If the thread failed at its start, it would be started
  // again and again.
  await preparer.then(runDry).catch(() => undefined);
  parentPort?.postMessage({ loadedThread: threadId } satisfies ThreadMessage);
  return async (task) => {
    Atomics.store(task.begun, 0, 1);
    try {
      return moved(await (await preparer)(task));
    } catch (error) {
      return { error: toTransferredError(error) } satisfies PreparationOutcome;
    }
  };
}

function askModule(): ModuleClient {
  const { port1, port2 } = new MessageChannel();
  parentPort?.postMessage({ modulePort: port2 } satisfies ThreadMessage, [port2]);
  return new ModuleClient(systemTime, port1);
}

async function runDry(prepare: PrepareDocument): Promise<void> {
  await prepare({
    documentType: 'BILL_OF_LADING',
    body: new TextEncoder().encode(JSON.stringify(DRY_RUN)),
    uuid: '00000000-0000-7000-8000-000000000000',
    issuedAt: 0,
  });
}

/** The document's bytes are transferred, not copied. */
function moved(prepared: PreparedDocument): unknown {
  const outcome: PreparationOutcome = { prepared };
  return move({ [valueSymbol]: outcome, [transferableSymbol]: prepared.document.buffer });
}

/** The pool awaits this promise and calls the resulting function. */
export default start(workerData as PreparationSettings);
