import type { MessagePort } from 'node:worker_threads';
import { workerData } from 'node:worker_threads';
import {
  fromTransferredError,
  toTransferredError,
  type TransferredError,
} from '../issuance/transferred-error';
import { parseBody } from '../issuance/parse-body';
import type { TokenState } from '../registry/read-token-state';
import type { TokenLocation } from '../token/token-location';
import { credentialIn } from '../verification/presented-credential';
import { validateRequest } from './validate';
import { verifyPresented, type VerificationSettings } from './verify-presented';
import type { Validation, VerifyView } from './views';

/** The work of a thread. It asks for the token's state at the port, because nodes have keys. */
export type CheckingTask =
  { kind: 'validate'; bytes: Uint8Array } | { kind: 'verify'; bytes: Uint8Array; port: MessagePort };

/** The answer to a question for a token. */
export type TokenAnswer = { state: TokenState } | { error: TransferredError };

/** The result. Errors are converted, because they would lose their class between threads. */
export type CheckingOutcome = { result: Validation | VerifyView } | { error: TransferredError };

const settings = workerData as VerificationSettings;

/** The thread runs this for each task. */
export default async function check(task: CheckingTask): Promise<CheckingOutcome> {
  try {
    if (task.kind === 'validate') return { result: await validateRequest(parseBody(task.bytes)) };
    const credential = credentialIn(parseBody(task.bytes));
    return { result: await verifyPresented(credential, settings, (place) => ask(task.port, place)) };
  } catch (error) {
    return { error: toTransferredError(error) };
  }
}

function ask(port: MessagePort, location: TokenLocation): Promise<TokenState> {
  return new Promise((resolve, reject) => {
    port.once('message', (answer: TokenAnswer) => {
      if ('state' in answer) resolve(answer.state);
      else reject(fromTransferredError(answer.error));
    });
    port.postMessage(location);
  });
}
