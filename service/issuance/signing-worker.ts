import { workerData } from 'node:worker_threads';
import { serveTasks } from '../base/worker-tasks';
import { createDocumentPreparer, type Preparation, type PreparationSettings } from './prepare-document';

/**
 * A document for a dry run at the start of a thread, so that no caller waits for loading, compiling and
 * processing the contexts.
 */
const REQUEST = {
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
const DRY_RUN: Preparation = {
  documentType: 'BILL_OF_LADING',
  body: new TextEncoder().encode(JSON.stringify(REQUEST)),
  uuid: '00000000-0000-7000-8000-000000000000',
  issuedAt: 0,
};

async function start(): Promise<void> {
  const prepare = createDocumentPreparer(workerData as PreparationSettings);
  // The next caller gets the same error. If the thread failed at its start, it would be started again and
  // again.
  await prepare(DRY_RUN).catch(() => undefined);
  serveTasks(prepare, ({ document }) => [document.buffer]);
}

void start();
