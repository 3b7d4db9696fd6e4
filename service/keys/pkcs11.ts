import { createRequire } from 'node:module';
import { join } from 'node:path';
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { ConfigurationError, SignerError } from '../base/errors';
import { PROJECT_ROOT } from '../base/project-root';
import type { Time } from '../base/time';
import { newDeferred } from '../base/waiting';
import type { ModuleSettings } from '../config/key-settings';
import type {
  AskedQuestion,
  GivenAnswer,
  KeyDescription,
  ModuleAnswer,
  ModuleQuestion,
  ThreadData,
} from './pkcs11-thread';

/** Compiled, like the other threads. */
const THREAD = join(PROJECT_ROOT, 'dist/service/keys/pkcs11-thread.js');

/** A module in a network takes a tenth of this, and its log-in some seconds. */
const ANSWER_WITHIN_MS = 10_000;

/** A key of the module. */
type AskedKey = Pick<ModuleQuestion, 'label' | 'curve'>;

/** Asks the thread that owns the module, through a port. */
export class ModuleClient {
  readonly #waiting = new Map<number, (answer: ModuleAnswer) => void>();
  #lastId = 0;

  constructor(
    private readonly time: Time,
    private readonly port: MessagePort,
  ) {
    port.on('message', ({ id, ...answer }: GivenAnswer) => this.#waiting.get(id)?.(answer));
    port.unref();
  }

  /** @throws SignerError */
  async describe(key: AskedKey): Promise<KeyDescription> {
    return (await this.#describedBy({ kind: 'describe', ...key })).description;
  }

  /**
   * Makes the key pair, if there is none of its label.
   *
   * @returns `isNew`: whether there was none.
   * @throws SignerError
   */
  async make(key: AskedKey): Promise<KeyDescription & { isNew: boolean }> {
    const { description, isNew = false } = await this.#describedBy({ kind: 'make', ...key });
    return { ...description, isNew };
  }

  /**
   * Signs a digest of 32 bytes.
   *
   * @returns r and s, 32 bytes each.
   * @throws SignerError
   */
  async sign(key: AskedKey, digest: Uint8Array): Promise<Uint8Array> {
    const answer = await this.#ask({ kind: 'sign', ...key, digest });
    if ('signature' in answer) return answer.signature;
    throw unexpected();
  }

  async #describedBy(question: ModuleQuestion) {
    const answer = await this.#ask(question);
    if ('description' in answer) return answer;
    throw unexpected();
  }

  /** A thread that waits for its module does not hear a signal, so the time is limited here. */
  async #ask(question: ModuleQuestion): Promise<Exclude<ModuleAnswer, { problem: unknown }>> {
    const id = ++this.#lastId;
    this.port.ref();
    const { promise, resolve } = newDeferred<ModuleAnswer | undefined>();
    this.#waiting.set(id, resolve);
    const cancel = this.time.later(ANSWER_WITHIN_MS, () => resolve(undefined));
    const until = this.time.now() + ANSWER_WITHIN_MS;
    this.port.postMessage({ id, until, question } satisfies AskedQuestion);
    const answer = await promise.finally(() => {
      cancel();
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.port.unref();
    });
    if (answer === undefined) {
      const remedy = 'Check the module, or the way to it.';
      const message = `The module does not answer within ${ANSWER_WITHIN_MS / 1000} s. ${remedy}`;
      throw new SignerError('SIGNER_UNREACHABLE', message, { remedy, retryable: true });
    }
    if (!('problem' in answer)) return answer;
    const { code, message, remedy } = answer.problem;
    throw new SignerError(code, message, { remedy, retryable: true });
  }
}

function unexpected(): SignerError {
  return new SignerError('SIGNER_ANSWER_WRONG', 'The module answers another question.', { retryable: true });
}

/** A module that is open in this process. */
export interface OpenModule {
  client: ModuleClient;
  /** Lets another thread ask, through this port. */
  connect(port: MessagePort): void;
}

/** A module is initialised once in a process (PKCS #11 v2.40, section 5.4), whoever uses its keys. */
const OPEN = new Map<string, OpenModule>();

/**
 * Starts the thread that owns the module. It opens the module with the first question, and keeps no process
 * alive.
 *
 * @throws ConfigurationError PKCS11_NOT_INSTALLED
 */
export function openModule(time: Time, settings: ModuleSettings): OpenModule {
  const { path, token } = settings;
  const name = JSON.stringify([path, token]);
  const known = OPEN.get(name);
  if (known !== undefined) return known;
  requireAddon();
  // A module reads the environment of the process, which the thread's own code does not need.
  const busy = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: ThreadData = { settings, busy };
  const thread = new Worker(THREAD, { workerData, env: {}, argv: [], execArgv: [] });
  thread.unref();
  process.once('exit', () => endWithout(busy));
  const { port1, port2 } = new MessageChannel();
  const connect = (port: MessagePort): void => thread.postMessage(port, [port]);
  connect(port2);
  const opened = { client: new ModuleClient(time, port1), connect };
  OPEN.set(name, opened);
  return opened;
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
