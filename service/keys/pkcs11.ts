import { createRequire } from 'node:module';
import { ConfigurationError, type SignerError } from '../base/errors';
import { type Time, untilAborted, within } from '../base/time';
import { createWorkers, openThread } from '../base/workers';
import type { ModuleSettings } from '../config/key-settings';
import { signerError } from './signer-state';
import type { ModuleAnswers, ModuleQuestion, ThreadData } from './pkcs11-thread';

/** A module in a network takes a tenth of this, and its log-in some seconds. */
const ANSWER_WITHIN_MS = 10_000;
/** Questions wait for their turn as long as for the answer. */
const IN_TURN = { permits: 1, waiting: Infinity, waitMs: Infinity, busy: '' };

/** Asks a module. @throws SignerError */
export type AskModule = <Kind extends keyof ModuleAnswers>(
  question: ModuleQuestion & { kind: Kind },
) => Promise<ModuleAnswers[Kind]>;

/** A module is initialised once in a process (PKCS #11 v2.40, section 5.4), whoever uses its keys. */
const OPEN = new Map<string, AskModule>();

/**
 * Starts the thread that owns the module. It opens the module with the first question, and keeps no process
 * alive.
 *
 * @throws ConfigurationError PKCS11_NOT_INSTALLED
 */
export function openModule(time: Time, settings: ModuleSettings): AskModule {
  const { path, token } = settings;
  const name = JSON.stringify([path, token]);
  const known = OPEN.get(name);
  if (known !== undefined) return known;
  requireAddon();
  const busy = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: ThreadData = { settings, busy };
  const thread = createWorkers<ModuleQuestion, ModuleAnswers[keyof ModuleAnswers]>({
    ...IN_TURN,
    time,
    open: () => openThread('keys/pkcs11-thread.js', { workerData }),
    lost: (cause) => unreachable('ended its thread', cause),
  });
  process.once('exit', () => endWithout(busy));
  // A thread that waits for its module cannot be ended: it has its turn until the module answers.
  const ask = async (question: ModuleQuestion) => {
    const error = unreachable(`does not answer within ${ANSWER_WITHIN_MS / 1000} s`);
    return within(time, ANSWER_WITHIN_MS, (late) => untilAborted(late, thread.run(question, late)), error);
  };
  OPEN.set(name, ask as AskModule);
  return ask as AskModule;
}

function unreachable(problem: string, cause?: unknown): SignerError {
  const remedy = 'Check the module, or the way to it.';
  return signerError('SIGNER_UNREACHABLE', `The module ${problem}`, remedy, cause);
}

/** How long the end of the process waits for the module. */
const LAST_ANSWER_MS = 1_000;

/** Node.js waits at its end for threads, and for ever for one inside a module that hangs. */
function endWithout(busy: Int32Array<SharedArrayBuffer>): void {
  if (Atomics.wait(busy, 0, 1, LAST_ANSWER_MS) !== 'timed-out') return;
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, 'SIGTERM');
}

function requireAddon(): void {
  try {
    createRequire(__filename)('pkcs11js');
  } catch (cause) {
    const remedy =
      'Run `npm install pkcs11js && npm rebuild pkcs11js --ignore-scripts=false`; it needs a C++ compiler.';
    const message = `PKCS11_MODULE is set, but the package pkcs11js is not there, or not built. ${remedy}`;
    throw new ConfigurationError('PKCS11_NOT_INSTALLED', message, { cause, remedy });
  }
}

/** Where the keys of a module are, for reports. */
export function placeOf({ path, token }: ModuleSettings): string {
  return `${path}, token ${token}`;
}
