import childProcess, { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { systemTime, newDeferred } from '../../service/base/time';
import { createCheckingPool, type CheckingPool } from '../../service/answers/checking-pool';
import type { VerifiedView } from '../../service/answers/views';
import { CallerLeftError, ChainError } from '../../service/base/errors';
import { IN_ESCROW } from '../helpers/credentials/fake-sources';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';
import { errorOf } from '../helpers/error-of';
import { eventually } from '../helpers/eventually';
import { serve } from '../helpers/http-server';
import { owned, stopLater } from '../helpers/resources';

type Settings = Parameters<typeof createCheckingPool>[0];

const SUBJECT = { type: ['BillOfLading'], scac: 'SGPU', blNumber: 'SG1' };

describe('the checking pool', () => {
  /** It publishes the keys of the issuers below, and contexts. */
  let hosts: Record<string, RequestListener>;
  let url: string;
  let issuer: TestIssuer;

  before(async () => {
    const server = await serve((request, response) => {
      const host = hosts[request.url ?? ''];
      if (host) host(request, response);
      else response.writeHead(404).end();
    });
    url = server.url.replace('127.0.0.1', 'localhost');
    issuer = await createTestIssuer(url.replace('http://', ''));
  });

  beforeEach(() => {
    hosts = {
      '/.well-known/did.json': (_, response) => void response.end(JSON.stringify(issuer.didDocument)),
    };
  });

  const poolWith = (settings: Partial<Settings> = {}): CheckingPool & AsyncDisposable => {
    const rules = { allowPrivate: true, allowLoopback: true };
    const pool = createCheckingPool({ time: systemTime, contextUrl: issuer.contextUrl, rules, ...settings });
    return owned('the checking pool', pool, 'stop');
  };
  /** The processes that are started from now on, the latest last. */
  function startedProcesses(): ChildProcess[] {
    const { fork } = childProcess;
    const processes: ChildProcess[] = [];
    stopLater('the watch over processes', () => void (childProcess.fork = fork));
    childProcess.fork = ((...args: Parameters<typeof fork>) => {
      const started = fork(...args);
      processes.push(started);
      return started;
    }) as typeof fork;
    return processes;
  }
  const stay = (): AbortSignal => new AbortController().signal;

  /** The bytes of a request about a credential that names these contexts besides its own. */
  async function bytesOf(subject: object = SUBJECT, paths: string[] = [], options?: object): Promise<Buffer> {
    const signed = await issuer.sign({ ...subject }, { validUntil: '2999-01-01T00:00:00Z' });
    const contexts = [...signed['@context'], ...paths.map((path) => url + path)];
    const verifiableCredential = { ...signed, '@context': contexts };
    return Buffer.from(JSON.stringify({ verifiableCredential, ...(options && { options }) }));
  }

  async function verify(pool: CheckingPool, bytes: Uint8Array): Promise<VerifiedView> {
    const parts = await pool.verify(bytes, stay(), async () => IN_ESCROW);
    return JSON.parse(Buffer.concat(parts).toString()) as VerifiedView;
  }

  const answering =
    (context: unknown): RequestListener =>
    (_, response) =>
      void response.end(JSON.stringify({ '@context': context }));

  it('ends a check that needs more memory than it may have, and goes on with the next', async () => {
    await using pool = poolWith({ heapMegabytes: 64 });
    const large = await bytesOf({ ...SUBJECT, vessel: `中${'x'.repeat(16_000_000)}` });
    const derivation = { options: { selectivePointers: [''] } };
    const { verifiableCredential } = JSON.parse(large.toString()) as Record<string, unknown>;
    const derive = Buffer.from(JSON.stringify({ verifiableCredential, ...derivation }));
    for (const check of [
      () => pool.verify(large, stay(), async () => IN_ESCROW),
      () => pool.derive(derive, stay()),
    ]) {
      const refusal = await errorOf(check());
      expect(refusal).to.have.property('code', 'CHECK_ENDED');
      expect(refusal.message).to.contain('memory');
    }
    expect(await verify(pool, await bytesOf())).to.deep.include({ verified: true, outcome: 'valid' });
  });

  it('goes on after a process was killed, or could not be started, and leaves none behind', async () => {
    await using pool = poolWith();
    const processes = startedProcesses();
    const bytes = await bytesOf();
    const ending = errorOf(verify(pool, bytes));
    await eventually('a process', () => processes.at(-1)?.kill('SIGKILL'));
    expect(await ending).to.include({ code: 'CHECK_ENDED' });
    expect((await ending).message).to.contain('its process was lost');
    expect((await verify(pool, bytes)).outcome).to.equal('valid');
    // Between two checks.
    const idle = processes.at(-1)!;
    const exit = once(idle, 'exit');
    idle.kill('SIGKILL');
    await exit;
    expect((await verify(pool, bytes)).outcome).to.equal('valid');
    processes.at(-1)?.kill('SIGKILL');
    const { execPath } = process;
    process.execPath = '/nowhere/node';
    const unstarted = await errorOf(pool.validate(bytes)).finally(() => (process.execPath = execPath));
    expect(unstarted).to.have.property('code', 'CHECK_ENDED');
    expect(unstarted.message).to.contain('its process could not be started');
    expect(await pool.validate(bytes)).not.to.be.empty;
    await pool.stop();
    const isOver = ({ pid, exitCode, signalCode }: ChildProcess): boolean =>
      pid === undefined || exitCode !== null || signalCode !== null;
    expect(processes.map(isOver)).to.deep.equal(processes.map(() => true));
  });

  it('passes on a text of millions of characters of any alphabet unchanged', async () => {
    await using pool = poolWith();
    const vessel = `中é🚢\u2028${'\n"\\\t\u007fx'.repeat(300_000)}`;
    const view = await verify(pool, await bytesOf({ ...SUBJECT, vessel }));
    expect(view.outcome).to.equal('valid');
    expect((view.shown?.credentialSubject as { vessel: string }).vessel === vessel).to.equal(true);
  });

  it('checks other credentials while the contexts of one do not answer', async () => {
    await using pool = poolWith({ fetchMs: 300_000 });
    const asked = newDeferred<undefined>();
    const answer = newDeferred<undefined>();
    hosts['/slow'] = (request, response) => {
      asked.resolve(undefined);
      void answer.promise.then(() => answering({})(request, response));
    };
    let isAnswered = false;
    const slow = verify(pool, await bytesOf(SUBJECT, ['/slow'])).finally(() => (isAnswered = true));
    await asked.promise;
    expect((await verify(pool, await bytesOf())).outcome).to.equal('valid');
    const derive = { selectivePointers: ['/credentialSubject/blNumber'] };
    expect(await pool.derive(await bytesOf(SUBJECT, [], derive), stay())).not.to.be.empty;
    expect(isAnswered).to.equal(false);
    answer.resolve(undefined);
    expect((await slow).lookedUp).to.contain(`${url}/slow`);
  });

  it('gives all that a check fetches one time, and could not tell after it', async () => {
    await using pool = poolWith({ fetchMs: 500 });
    // Each names the next, and the last does not answer.
    hosts['/1'] = answering(['/2', { a: 'https://a.example/a' }]);
    hosts['/2'] = answering({ b: { '@id': 'https://a.example/b', '@context': `${url}/3` } });
    const begun: string[] = [];
    hosts['/3'] = ({ url: path = '' }) => void begun.push(path);
    const view = await verify(pool, await bytesOf(SUBJECT, ['/1']));
    expect(begun).to.deep.equal(['/3']);
    expect(view.outcome).to.equal('could not tell');
    const found = view.documentIntegrity.checks.map((check) => check.found).join();
    expect(found).to.contain(`${url}/3 `).and.contain('within the 0.5 s');
    expect(view.lookedUp).to.include.members([`${url}/1`, `${url}/2`, `${url}/3`]);
    const options = { selectivePointers: [''] };
    const refusal = await errorOf(pool.derive(await bytesOf(SUBJECT, ['/3'], options), stay()));
    expect(refusal).to.include({ code: 'CONTEXT_UNAVAILABLE', retryable: true });
  });

  it('uses contexts that others name, by URLs relative to them', async () => {
    await using pool = poolWith();
    hosts['/folder/1'] = answering('2');
    hosts['/folder/2'] = answering({ '@import': `${url}/folder/3`, a: 'https://a.example/a' });
    hosts['/folder/3'] = answering({ b: 'https://a.example/b' });
    const view = await verify(pool, await bytesOf(SUBJECT, ['/folder/1']));
    expect(view.documentIntegrity.outcome).to.equal('valid');
    expect(view.outcome).to.equal('valid');
    expect(view.lookedUp.filter((one) => one.includes('folder'))).to.deep.equal(
      ['1', '2', '3'].map((name) => `${url}/folder/${name}`),
    );
  });

  it('tells what the token of a credential is, or why it could not be read', async () => {
    await using pool = poolWith();
    const bytes = await bytesOf();
    const parts = await pool.verify(bytes, stay(), async (location, lookedUp) => {
      lookedUp.push(`https://node-of-${location.chainId}.example`);
      throw new ChainError('RPC_UNREACHABLE', 'the node is away');
    });
    const view = JSON.parse(Buffer.concat(parts).toString()) as VerifiedView;
    expect(view.documentStatus.outcome).to.equal('could not tell');
    expect(JSON.stringify(view.documentStatus.checks)).to.contain('the node is away');
    expect(view.lookedUp).to.contain('https://node-of-31337.example');
  });

  it('gives up what waits for hosts when the caller leaves, and when it stops', async () => {
    await using pool = poolWith();
    let isOpen = 0;
    hosts['/slow'] = (_, response) => {
      isOpen++;
      response.once('close', () => isOpen--);
    };
    const bytes = await bytesOf(SUBJECT, ['/slow']);
    const leaving = new AbortController();
    const left = errorOf(pool.verify(bytes, leaving.signal, async () => IN_ESCROW));
    const stopped = errorOf(pool.verify(bytes, stay(), async () => IN_ESCROW));
    await eventually('both are asked for', () => isOpen === 2);
    leaving.abort(new CallerLeftError());
    expect(await left).to.be.instanceOf(CallerLeftError);
    await pool.stop();
    expect(await stopped).to.have.property('code', 'CHECK_ENDED');
    await eventually('nothing is asked any more', () => isOpen === 0);
    expect(await errorOf(pool.validate(bytes))).to.have.property('code', 'CHECK_ENDED');
  });
});
