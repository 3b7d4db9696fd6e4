import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import {
  BusyError,
  CallerLeftError,
  ConfigurationError,
  RequestError,
  SigningError,
  type ServiceError,
} from '../../service/base/errors';
import type { Preparation } from '../../service/issuance/prepare-document';
import { createSigningPool, type SigningPool } from '../../service/issuance/signing-pool';
import type { SignedCredential } from '../../service/issuance/sign';
import { fromTransferredError, toTransferredError } from '../../service/issuance/transferred-error';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { eventually } from '../helpers/eventually';
import { isBundled } from '../helpers/processes/bundled-script';
import { track } from '../helpers/resources';
import { attachmentOf, bodyWith, preparationOf, settingsOf } from '../helpers/credentials/preparations';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';

const THREADS = 2;
/** Signing so many numbers takes a thread some seconds, and many seconds. */
const SOME_NUMBERS = 3_000;
const MANY_NUMBERS = 15_000;

describe('the signing pool', () => {
  let issuer: TestIssuer;
  let pool: SigningPool;
  let untrack: () => void;
  /** The running threads, the oldest first. */
  const threads: Worker[] = [];
  /** Threads that have sent a message: their first message says that they are loaded. */
  const loaded = new Set<Worker>();
  const onThread = (thread: Worker): void => {
    threads.push(thread);
    thread.once('message', () => loaded.add(thread));
    thread.once('exit', () => threads.splice(threads.indexOf(thread), 1));
  };

  before(async () => {
    issuer = await createTestIssuer();
    process.on('worker', onThread);
    pool = await createSigningPool(settingsOf(issuer), { threads: THREADS });
    untrack = track('the signing pool');
  });

  after(async () => {
    await pool?.destroy();
    process.off('worker', onThread);
    untrack();
    expect(threads, 'threads after destroy()').to.be.empty;
  });

  async function signed(body: string, number = 0): Promise<SignedCredential> {
    const { document } = await pool.prepare(preparationOf(body, number));
    return JSON.parse(Buffer.from(document).toString('utf8')) as SignedCredential;
  }

  const refusalOf = (work: Promise<unknown>): Promise<ServiceError> =>
    work.then(
      () => expect.fail('it was not refused'),
      (error: unknown) => error as ServiceError,
    );

  it('gives each of many callers its own document, on its fixed number of threads', async () => {
    const documents = await Promise.all(
      Array.from({ length: 20 }, (_, number) => signed(bodyWith({ blNumber: `B${number}` }), number)),
    );
    expect(documents.map(({ credentialSubject }) => credentialSubject.blNumber)).to.deep.equal(
      documents.map((_, number) => `B${number}`),
    );
    expect(threads).to.have.lengthOf(THREADS);
    const [first] = documents;
    const derived = await derive(first as SignedCredential, ['/credentialSubject']);
    expect((await verify(derived, issuer.didDocument)).verified).to.equal(true);
  });

  (isBundled ? it : it.skip)('loads neither an HTTP client nor the contracts into its threads', () => {
    const worker = readFileSync(join(PROJECT_ROOT, 'dist/service/issuance/signing-worker.js'), 'utf8');
    expect(worker).to.include('service/issuance/prepare-document.ts');
    for (const unneeded of ['node_modules/undici/', 'node_modules/ws/', 'typechain-types/'])
      expect(worker.includes(unneeded), unneeded).to.equal(false);
  });

  it('transfers 40 MB to a thread and back, unchanged', async () => {
    const attachment = attachmentOf(40);
    const preparation = preparationOf(bodyWith({ attachments: [attachment] }));
    const { document } = await pool.prepare(preparation);
    expect(preparation.body.byteLength, 'what is left of the body here').to.equal(0);
    const { credentialSubject } = JSON.parse(Buffer.from(document).toString('utf8')) as SignedCredential;
    const [{ data }] = credentialSubject.attachments as [{ data: string }];
    const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect(hash(data)).to.equal(hash(attachment.data));
  });

  it('accepts a body in shared memory, and leaves the rest of the memory unchanged', async () => {
    const memory = new TextEncoder().encode(`${bodyWith()}neighbour`);
    await pool.prepare(preparationOf(memory.subarray(0, -'neighbour'.length)));
    expect(Buffer.from(memory).toString()).to.match(/neighbour$/);
    await pool.prepare(preparationOf(Buffer.from(bodyWith())));
  });

  it('passes on the errors of a thread with their class, code, remedy and cause', async () => {
    const body = await refusalOf(pool.prepare(preparationOf('{')));
    expect(body).to.be.instanceOf(RequestError);
    expect(body).to.include({
      name: 'RequestError',
      code: 'BODY_NOT_JSON',
      message: 'The body is not a valid JSON object.',
      retryable: false,
    });
    expect(body.cause).to.be.instanceOf(Error);
    const term = await refusalOf(signed(bodyWith({ vesel: 'x' })));
    expect(term).to.be.instanceOf(SigningError);
    expect(term.code).to.equal('SUBJECT_TERM_UNDEFINED');
    expect(term.remedy).to.match(/^Use only terms/);
    expect((term.cause as Error).message).to.equal('Safe mode validation error.');
  });

  it('fails only the document of a thread that ended, and replaces the thread', async () => {
    const before = [...threads];
    const large = preparationOf(bodyWith({ attachments: [attachmentOf(40)] }), 1);
    const lost = refusalOf(pool.prepare(large));
    const others = Promise.all([2, 3, 4, 5].map((number) => signed(bodyWith(), number)));
    // The first free thread takes the first task.
    await before[0]?.terminate();
    const refusal = await lost;
    expect(refusal).to.be.instanceOf(SigningError);
    expect(refusal).to.include({ code: 'SIGNING_WORKER_LOST', retryable: true });
    expect(await others).to.have.lengthOf(4);
    await eventually('another thread is loaded', () => [...loaded].includes(threads[THREADS - 1] as Worker));
    expect(threads).not.to.include(before[0]);
    expect(await Promise.all([6, 7, 8].map((number) => signed(bodyWith(), number)))).to.have.lengthOf(3);
  });

  it('refuses, instead of waiting for ever, when no thread starts, and recovers', async () => {
    const endAtOnce = (thread: Worker): void => void thread.terminate();
    process.on('worker', endAtOnce);
    await Promise.all([...threads].map((thread) => thread.terminate()));
    const refusal = await refusalOf(signed(bodyWith()));
    expect(refusal).to.include({ code: 'SIGNING_WORKER_LOST', retryable: true });
    process.off('worker', endAtOnce);
    expect((await signed(bodyWith())).issuer).to.equal(issuer.did);
  });

  /** A document that takes long to sign for its size. */
  const slow = (numbers: number): string =>
    bodyWith({ voyageNo: Array.from({ length: numbers }, (_, number) => number) });

  /** Prepares a document whose caller leaves once a thread has it. */
  async function abandon(by: SigningPool, preparation: Preparation): Promise<unknown> {
    const leaving = new AbortController();
    const outcome = by.prepare(preparation, leaving.signal).catch((error: unknown) => error);
    await eventually('a thread has it', () => preparation.body.byteLength === 0, { everyMs: 1 });
    leaving.abort(new CallerLeftError());
    return outcome;
  }

  /** Runs `use` with a pool of one loaded thread. */
  async function withOneThread(
    options: { waiting?: number; waitMs?: number; longestMs?: number },
    use: (other: SigningPool) => Promise<void>,
  ): Promise<void> {
    const other = await createSigningPool(settingsOf(issuer), { threads: 1, ...options });
    try {
      await other.prepare(preparationOf(bodyWith()));
      await use(other);
    } finally {
      await other.destroy();
    }
  }

  it('reports its load, and limits how many documents wait and for how long', async () => {
    await withOneThread({ waiting: 2, waitMs: 500 }, async (other) => {
      expect(other.figures()).to.deep.equal({ waiting: 0, busy: 0, threads: 1 });
      const first = other.prepare(preparationOf(slow(SOME_NUMBERS)));
      const waiting = [1, 2].map((number) => refusalOf(other.prepare(preparationOf(bodyWith(), number))));
      expect(other.figures()).to.deep.equal({ waiting: 2, busy: 1, threads: 1 });
      const tooMany = await refusalOf(other.prepare(preparationOf(bodyWith(), 3)));
      expect(other.figures(), 'while the others wait').to.include({ waiting: 2 });
      for (const refusal of [tooMany, ...(await Promise.all(waiting))]) {
        expect(refusal).to.be.instanceOf(BusyError);
        expect(refusal).to.include({ code: 'BUSY', retryable: true, retryAfterMs: 500 });
        expect(refusal.message).to.equal('Too many documents are being signed: send it again later.');
      }
      await first;
      expect(other.figures()).to.deep.equal({ waiting: 0, busy: 0, threads: 1 });
    });
  });

  it('drops a waiting document at once when its caller leaves, and transfers no body', async () => {
    await withOneThread({}, async (other) => {
      const first = other.prepare(preparationOf(slow(SOME_NUMBERS)));
      const leaving = new AbortController();
      const [abandoned, late] = [preparationOf(bodyWith(), 1), preparationOf(bodyWith(), 2)];
      const gone = refusalOf(other.prepare(abandoned, leaving.signal));
      const stays = other.prepare(preparationOf(bodyWith(), 3));
      leaving.abort(new CallerLeftError());
      expect(other.figures()).to.include({ waiting: 1, busy: 1 });
      expect(await gone).to.be.instanceOf(CallerLeftError);
      expect(await refusalOf(other.prepare(late, leaving.signal))).to.be.instanceOf(CallerLeftError);
      expect(other.figures(), 'the first is still being signed').to.include({ busy: 1 });
      for (const { body } of [abandoned, late]) expect(body.byteLength).to.be.greaterThan(0);
      await Promise.all([first, stays]);
    });
  });

  it('lets a thread finish an abandoned document that takes little time', async () => {
    const before = [...threads];
    expect(await abandon(pool, preparationOf(bodyWith()))).to.have.property('document');
    expect(threads).to.deep.equal(before);
  });

  it('ends only the thread of a long abandoned document, and replaces the thread', async () => {
    const before = [...threads];
    const gone = abandon(pool, preparationOf(slow(MANY_NUMBERS), 1));
    const others = [slow(SOME_NUMBERS), bodyWith(), bodyWith()].map((body, number) =>
      pool.prepare(preparationOf(body, number + 2)),
    );
    expect(pool.figures()).to.deep.equal({ waiting: 2, busy: 2, threads: THREADS });
    expect(await gone).to.be.instanceOf(CallerLeftError);
    expect(await Promise.all(others)).to.have.lengthOf(3);
    await eventually('the thread is replaced', () => {
      const [newest] = threads.filter((thread) => !before.includes(thread));
      return newest !== undefined && loaded.has(newest) && threads.length === THREADS;
    });
    expect(before.filter((thread) => threads.includes(thread))).to.have.lengthOf(THREADS - 1);
    expect(await Promise.all([6, 7, 8].map((number) => signed(bodyWith(), number)))).to.have.lengthOf(3);
  });

  it('ends a thread that takes too long for a document, and replaces it', async () => {
    await withOneThread({ longestMs: 10 }, async (other) => {
      const refusal = await refusalOf(other.prepare(preparationOf(slow(MANY_NUMBERS), 1)));
      expect(refusal).to.include({ code: 'SIGNING_WORKER_LOST', retryable: true });
      expect(await other.prepare(preparationOf(bodyWith(), 2))).to.have.property('document');
    });
  });

  /** Starts a pool, whose threads still load; `wereLoaded`: which ones were loaded when they ended. */
  async function startOther(): Promise<{ other: SigningPool; wereLoaded: Promise<boolean[]> }> {
    const before = new Set(threads);
    const other = await createSigningPool(settingsOf(issuer), { threads: THREADS, abandonedMs: 1 });
    const started = await eventually('the threads start', () => {
      const others = threads.filter((thread) => !before.has(thread));
      return others.length === THREADS ? others : undefined;
    });
    const ends = started.map((thread) => once(thread, 'exit').then(() => loaded.has(thread)));
    return { other, wereLoaded: Promise.all(ends) };
  }

  it('ends no thread that is still loading when callers leave', async () => {
    const { other, wereLoaded } = await startOther();
    const abandoned = [1, 2].map((number) => abandon(other, preparationOf(slow(MANY_NUMBERS), number)));
    for (const outcome of await Promise.all(abandoned)) expect(outcome).to.be.instanceOf(CallerLeftError);
    expect(await wereLoaded).to.deep.equal([true, true]);
    expect((await other.prepare(preparationOf(bodyWith()))).document).not.to.be.empty;
    await eventually('all are replaced', () => threads.every((thread) => loaded.has(thread)));
    await other.destroy();
  });

  it('refuses documents that come after its end, and those that still wait then', async () => {
    const other = await createSigningPool(settingsOf(issuer), { threads: 1 });
    // Signing takes longer than the check whether the thread is loaded.
    const large = bodyWith({ attachments: [attachmentOf(10)] });
    const late = [1, 2].map((number) => refusalOf(other.prepare(preparationOf(large, number))));
    await other.destroy();
    for (const refusal of [...late, refusalOf(other.prepare(preparationOf(bodyWith())))])
      expect(await refusal).to.include({ code: 'SIGNING_WORKER_LOST' });
  });

  it('ends no thread that is still loading when it is destroyed: that would end the process', async () => {
    const { other, wereLoaded } = await startOther();
    await other.destroy();
    expect(await wereLoaded).to.deep.equal([true, true]);
  });

  it('does not start with a damaged key pair', async () => {
    const running = threads.length;
    const issuerKey = { ...issuer.keyPair, secretKeyMultibase: 'z42damaged' };
    const refusal = await refusalOf(createSigningPool({ ...settingsOf(issuer), issuerKey }));
    expect(refusal).to.be.instanceOf(ConfigurationError);
    expect(threads).to.have.lengthOf(running);
  });
});

describe('an error between threads', () => {
  it('keeps its class, code, message, remedy, reason and retryability, and the messages of causes', () => {
    const cause = new TypeError('the key', { cause: new Error('its first byte') });
    const said = { retryable: true, remedy: 'mend it', reason: 'EnforcedPause' };
    const error = new SigningError('A_CODE', 'what happened', { cause, ...said });
    const arrived = fromTransferredError(structuredClone(toTransferredError(error)));
    expect(arrived).to.be.instanceOf(SigningError);
    expect(arrived).to.include({
      name: 'SigningError',
      code: 'A_CODE',
      message: 'what happened',
      ...said,
    });
    const first = arrived.cause as Error;
    expect([first.message, (first.cause as Error).message]).to.deep.equal(['the key', 'its first byte']);
  });

  it('is a plain error if it was none of the service, even with an endless chain of causes', () => {
    const endless = new RangeError('round');
    endless.cause = endless;
    const arrived = fromTransferredError(structuredClone(toTransferredError(endless)));
    expect(arrived).not.to.have.property('code');
    expect(arrived.message).to.equal('round');
    expect(fromTransferredError(structuredClone(toTransferredError('text'))).message).to.equal('text');
  });
});
