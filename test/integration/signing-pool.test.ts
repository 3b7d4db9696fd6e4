import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import {
  BusyError,
  CallerLeftError,
  ConfigurationError,
  RequestError,
  SigningError,
  type ServiceError,
} from '../../service/base/errors';
import type { Workers } from '../../service/base/workers';
import type { Preparation } from '../../service/issuance/prepare-document';
import { createSigningPool } from '../../service/issuance/signing-pool';
import type { SignedDocument } from '../../service/journal/issuance';
import type { SignedCredential } from '../../service/issuance/sign';
import { fromTransferredError, toTransferredError } from '../../service/base/worker-tasks';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { derive, verify } from '../helpers/credentials/derive-and-verify';
import { eventually } from '../helpers/eventually';
import { isBundled } from '../helpers/processes/bundled-script';
import { owned } from '../helpers/resources';
import { attachmentOf, bodyWith, preparationOf, settingsOf } from '../helpers/credentials/preparations';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';
import { VirtualTime } from '../helpers/virtual-time';

const THREADS = 2;
/** Signing so many numbers takes a thread tenths of a second, and many seconds. */
const SOME_NUMBERS = 1_000;
const MANY_NUMBERS = 15_000;

type SigningThreads = Workers<Preparation, SignedDocument>;

const prepare = (
  by: SigningThreads,
  preparation: Preparation,
  left = new AbortController().signal,
): Promise<SignedDocument> => by.run(preparation, left);

describe('the signing pool', () => {
  let issuer: TestIssuer;
  let pool: SigningThreads;
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
    pool = owned(
      'the signing pool',
      await createSigningPool(settingsOf(issuer), { time: systemTime, threads: THREADS }),
      'stop',
    );
  });

  after(async () => {
    await pool?.stop();
    process.off('worker', onThread);
    expect(threads, 'threads after stop()').to.be.empty;
  });

  async function signed(body: string, number = 0): Promise<SignedCredential> {
    const { document } = await prepare(pool, preparationOf(body, number));
    return JSON.parse(Buffer.from(document).toString('utf8')) as SignedCredential;
  }

  /** A document that takes long to sign for its size. */
  const slow = (numbers: number): string =>
    bodyWith({ voyageNo: Array.from({ length: numbers }, (_, number) => number) });

  const refusalOf = (work: Promise<unknown>): Promise<ServiceError> =>
    work.then(
      () => expect.fail('it was not refused'),
      (error: unknown) => error as ServiceError,
    );

  it('gives each of many callers its own document, on its fixed number of threads', async () => {
    const documents = await Promise.all(
      Array.from({ length: 6 }, (_, number) => signed(bodyWith({ blNumber: `B${number}` }), number)),
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

  it('transfers 8 MB to a thread and back, unchanged', async () => {
    const attachment = attachmentOf(8);
    const preparation = preparationOf(bodyWith({ attachments: [attachment] }));
    const { document } = await prepare(pool, preparation);
    expect(preparation.body.byteLength, 'what is left of the body here').to.equal(0);
    const { credentialSubject } = JSON.parse(Buffer.from(document).toString('utf8')) as SignedCredential;
    const [{ data }] = credentialSubject.attachments as [{ data: string }];
    const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect(hash(data)).to.equal(hash(attachment.data));
  });

  it('accepts a body in shared memory, and leaves the rest of the memory unchanged', async () => {
    const memory = new TextEncoder().encode(`${bodyWith()}neighbour`);
    await prepare(pool, preparationOf(memory.subarray(0, -'neighbour'.length)));
    expect(Buffer.from(memory).toString()).to.match(/neighbour$/);
    await prepare(pool, preparationOf(Buffer.from(bodyWith())));
  });

  it('passes on the errors of a thread with their class, code, remedy and cause', async () => {
    const body = await refusalOf(prepare(pool, preparationOf('{')));
    expect(body).to.be.instanceOf(RequestError);
    expect(body).to.include({
      name: 'RequestError',
      code: 'BODY_NOT_JSON',
      message: 'The body is not a valid JSON object: line 1, column 2: a comma or } is expected.',
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
    const large = preparationOf(slow(SOME_NUMBERS), 1);
    const lost = refusalOf(prepare(pool, large));
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

  /** Prepares a document whose caller leaves once a thread has it. */
  async function abandon(by: SigningThreads, preparation: Preparation): Promise<unknown> {
    const leaving = new AbortController();
    const outcome = prepare(by, preparation, leaving.signal).catch((error: unknown) => error);
    await eventually('a thread has it', () => preparation.body.byteLength === 0, { everyMs: 1 });
    leaving.abort(new CallerLeftError());
    return outcome;
  }

  it('limits how many documents wait and how long, and drops one whose caller leaves at once', async () => {
    const time = new VirtualTime();
    const other = await createSigningPool(settingsOf(issuer), { time, threads: 1, waiting: 2, waitMs: 100 });
    await prepare(other, preparationOf(bodyWith()));
    expect(other.figures()).to.deep.equal({ waiting: 0, held: 0, workers: 1 });
    const first = prepare(other, preparationOf(slow(SOME_NUMBERS)));
    const leaving = new AbortController();
    const [abandoned, late] = [preparationOf(bodyWith(), 1), preparationOf(bodyWith(), 2)];
    const gone = refusalOf(prepare(other, abandoned, leaving.signal));
    const waiting = refusalOf(prepare(other, preparationOf(bodyWith(), 3)));
    expect(other.figures()).to.deep.equal({ waiting: 2, held: 1, workers: 1 });
    const tooMany = await refusalOf(prepare(other, preparationOf(bodyWith(), 4)));
    leaving.abort(new CallerLeftError());
    expect(other.figures(), 'while the other waits').to.include({ waiting: 1, held: 1 });
    expect(await gone).to.be.instanceOf(CallerLeftError);
    expect(await refusalOf(prepare(other, late, leaving.signal))).to.be.instanceOf(CallerLeftError);
    for (const { body } of [abandoned, late]) expect(body.byteLength).to.be.greaterThan(0);
    await time.pass(100);
    for (const refusal of [tooMany, await waiting]) {
      expect(refusal).to.be.instanceOf(BusyError);
      expect(refusal).to.include({ code: 'BUSY', retryable: true, retryAfterMs: 100 });
      expect(refusal.message).to.equal('Too many documents are being signed: send it again later.');
    }
    await first;
    expect(other.figures()).to.deep.equal({ waiting: 0, held: 0, workers: 1 });
    await other.stop();
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
      prepare(pool, preparationOf(body, number + 2)),
    );
    expect(pool.figures()).to.deep.equal({ waiting: 2, held: 2, workers: THREADS });
    expect(await gone).to.be.instanceOf(CallerLeftError);
    expect(await Promise.all(others)).to.have.lengthOf(3);
    await eventually('the thread is replaced', () => {
      const [newest] = threads.filter((thread) => !before.includes(thread));
      return newest !== undefined && loaded.has(newest) && threads.length === THREADS;
    });
    expect(before.filter((thread) => threads.includes(thread))).to.have.lengthOf(THREADS - 1);
    expect(await Promise.all([6, 7, 8].map((number) => signed(bodyWith(), number)))).to.have.lengthOf(3);
  });

  it('ends a thread that takes too long, or whose caller left, but none that is still loading', async () => {
    const before = new Set(threads);
    const options = { time: systemTime, threads: 1, longestMs: 10, abandonedMs: 1 };
    const other = await createSigningPool(settingsOf(issuer), options);
    const nextThread = (): Promise<Worker> =>
      eventually('a thread starts', () => {
        const thread = threads.find((one) => !before.has(one));
        if (thread) before.add(thread);
        return thread;
      });
    const first = await nextThread();
    const wasLoaded = once(first, 'exit').then(() => loaded.has(first));
    const left = abandon(other, preparationOf(slow(MANY_NUMBERS), 1));
    expect(await left).to.be.instanceOf(CallerLeftError);
    expect(await wasLoaded).to.equal(true);
    await nextThread();
    const tooLong = await refusalOf(prepare(other, preparationOf(slow(MANY_NUMBERS), 2)));
    expect(tooLong).to.include({ code: 'SIGNING_WORKER_LOST', retryable: true });
    const last = await nextThread();
    // While it loads, documents wait, and it must not be ended: that would end the process.
    const isLoadedAtLast = once(last, 'exit').then(() => loaded.has(last));
    const late = [3, 4].map((number) => refusalOf(prepare(other, preparationOf(slow(MANY_NUMBERS), number))));
    await other.stop();
    for (const refusal of [...late, refusalOf(prepare(other, preparationOf(bodyWith())))])
      expect(await refusal).to.include({ code: 'SIGNING_WORKER_LOST' });
    expect(await isLoadedAtLast).to.equal(true);
  });

  it('does not start with a damaged key pair', async () => {
    const running = threads.length;
    const issuerKey = { ...issuer.keyPair, secretKeyMultibase: 'z42damaged' };
    const refusal = await refusalOf(
      createSigningPool({ ...settingsOf(issuer), issuerKey }, { time: systemTime }),
    );
    expect(refusal).to.be.instanceOf(ConfigurationError);
    expect(threads).to.have.lengthOf(running);
  });
});

describe('an error between threads', () => {
  it('keeps its class, code, message, remedy, reason and retryability, and the messages of causes', () => {
    const cause = new TypeError('the key', { cause: new Error('its first byte') });
    const said = { retryable: true, remedy: 'mend it', reason: 'EnforcedPause' };
    const error = new SigningError('SIGNING_FAILED', 'what happened', { cause, ...said });
    const arrived = fromTransferredError(structuredClone(toTransferredError(error)));
    expect(arrived).to.be.instanceOf(SigningError);
    expect(arrived).to.include({
      name: 'SigningError',
      code: 'SIGNING_FAILED',
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
