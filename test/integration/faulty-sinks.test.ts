import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { createWebhookClient, type PostResult } from '../../service/delivery/attempt-delivery';
import type { IdleConnections } from '../../service/delivery/delivery-slots';
import { serve, type TestServer } from '../helpers/http-server';
import { hasOpenssl, makeCertificate } from '../helpers/processes/https-front';
import { stopLater } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';
import { webhookTo } from '../helpers/receiver/webhook-to';

const TIMEOUT_MS = 300;
/** Longer than a busy machine takes. */
const LONG_MS = 60_000;

describe('delivery to a faulty sink', () => {
  let server: TestServer;
  let answer: (response: ServerResponse) => void;
  let closed: Promise<unknown>;

  before(async () => {
    server = await serve((_request, response) => {
      closed = once(response, 'close');
      answer(response);
    });
  });

  async function deliver(timeoutMs = LONG_MS, url = server.url): Promise<PostResult> {
    const client = createWebhookClient({ ...webhookTo(url), timeoutMs }, systemTime);
    return client.post('{}', 'event-1').finally(() => client.close());
  }

  it('fails after the timeout if the sink hangs', async () => {
    answer = () => undefined;
    const failure = `no answer within ${TIMEOUT_MS} ms`;
    expect(await deliver(TIMEOUT_MS)).to.deep.equal({ status: undefined, failure });
  });

  for (const head of ['', 'HTTP/1.1 20', 'HTTP/1.1 204 No Content\r\nContent-Le', 'not HTTP at all\r\n\r\n'])
    it(`fails with a reason if the sink breaks off after the head ${JSON.stringify(head)}`, async () => {
      answer = (response) => void response.socket?.end(head);
      const result = await deliver();
      expect(result).to.have.property('status', undefined);
      expect(result).to.have.property('failure').that.is.a('string').and.not.equal('');
    });

  for (const status of [204, 503])
    it(`has the status ${status} that follows informational answers`, async () => {
      answer = (response) => {
        response.writeContinue();
        response.writeProcessing();
        response.writeEarlyHints({ link: '</style.css>; rel=preload' });
        setImmediate(() => response.writeHead(status).end());
      };
      expect(await deliver()).to.include({ status });
    });

  it('has the status of an answer with 60 kB of headers', async () => {
    answer = (response) =>
      void response.writeHead(204, { 'set-cookie': Array<string>(3).fill('x'.repeat(20_000)) }).end();
    expect(await deliver()).to.include({ status: 204 });
  });

  it('goes over a new connection right after the idle one was closed for its place', async () => {
    answer = (response) => void response.writeHead(204).end();
    const idle: IdleConnections = new Map();
    const client = createWebhookClient({ ...webhookTo(server.url), timeoutMs: LONG_MS }, systemTime, idle);
    expect(await client.post('{}', 'event-1')).to.include({ status: 204 });
    expect(idle.size).to.equal(1);
    for (const close of idle.values()) close();
    expect(await client.post('{}', 'event-2').finally(() => client.close())).to.include({ status: 204 });
  });

  it('fails with the words for an answer over http to https', async () => {
    answer = (response) => void response.end();
    expect(await deliver(LONG_MS, server.url.replace('http', 'https')))
      .to.have.property('failure')
      .that.matches(/^it speaks http there, not https: correct the scheme or port \(.*wrong version number/);
  });

  for (const [what, options, host, words] of [
    [
      'has a certificate of its own',
      {},
      'localhost',
      /^nobody trusted signed its certificate: .*NODE_EXTRA_CA_CERTS \(self-signed cert/,
    ],
    [
      'speaks HTTP/2 only',
      { ALPNProtocols: ['h2'] },
      'localhost',
      /^it speaks no HTTP\/1\.1 there: .*no application protocol/,
    ],
    [
      'wants a client certificate',
      { maxVersion: 'TLSv1.2', requestCert: true },
      'localhost',
      /^it refuses TLS: it wants a client certificate.*alert handshake failure/,
    ],
    [
      'has an old TLS',
      { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' },
      'localhost',
      /^it has no TLS 1\.2 or 1\.3: .*alert protocol version/,
    ],
  ] as const)
    it(`fails with a meaning, a remedy and the library's words if the sink ${what}`, async function () {
      if (!hasOpenssl) return this.skip();
      const { key, certificate } = await makeCertificate(temporaryFolder().path, [host]);
      const files = { key: readFileSync(key), cert: readFileSync(certificate) };
      const sink = createServer({ ...files, ...options }, (socket) => socket.end());
      await once(sink.listen(0, '127.0.0.1'), 'listening');
      stopLater('the sink', () => sink.close());
      const { port } = sink.address() as AddressInfo;
      expect(await deliver(LONG_MS, `https://${host}:${port}/`))
        .to.have.property('failure')
        .that.matches(words);
    });

  for (const [what, isBroken] of [
    ['breaks off', true],
    ['never ends', false],
  ] as const)
    it(`has the status of an answer whose body ${what}, and keeps no connection`, async () => {
      answer = (response) => {
        // eslint-disable-next-line no-restricted-syntax -- real time: bytes arrive one after the other.
        const drip = setInterval(() => response.write('.'), 20);
        response.on('close', () => clearInterval(drip));
        response.writeHead(200, { 'Content-Length': 1_000_000 }).write('so far');
        if (isBroken) setImmediate(() => response.destroy());
      };
      expect(await deliver()).to.include({ status: 200 });
      await closed;
    });
});
