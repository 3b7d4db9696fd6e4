import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { createWebhookClient, type PostResult } from '../../service/delivery/attempt-delivery';
import { serve, type TestServer } from '../helpers/http-server';
import { signingKeysOfTest } from '../helpers/receiver/webhook-to';

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

  async function deliver(timeoutMs = LONG_MS): Promise<PostResult> {
    const target = { url: server.url, headers: {}, signingKeys: signingKeysOfTest(), time: systemTime };
    const client = createWebhookClient({ ...target, timeoutMs });
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
