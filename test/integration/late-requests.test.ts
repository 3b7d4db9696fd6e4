import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { eventually } from '../helpers/eventually';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { codeOf } from '../../service/base/errors';
import { readBody } from '../../service/http/read-body';
import { listen, type HttpServer } from '../../service/http/server';

const PATIENCE = { requestTimeout: 300, connectionsCheckingInterval: 50 };
const LENGTH = 10;

describe('a late or malformed request', () => {
  let server: HttpServer;
  let client: Socket;
  /** The code of the error with which the reading of the body failed. */
  let outcome: unknown;

  beforeEach(async () => {
    outcome = undefined;
    const read = (request: IncomingMessage): Promise<unknown> =>
      readBody(request, LENGTH).catch((error: unknown) => (outcome = codeOf(error)));
    server = await listen((request) => void read(request), '127.0.0.1', 0, { time: systemTime, ...PATIENCE });
    // This client keeps its end open whatever the server does, as an attacker can.
    client = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
    client.on('error', () => undefined);
  });

  afterEach(async () => {
    client.destroy();
    await server.close();
  });

  /** Returns what the server sends until it ends the connection. */
  async function answer(): Promise<string> {
    const chunks: Buffer[] = [];
    client.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(client, 'end');
    return Buffer.concat(chunks).toString();
  }

  it('is answered 408 when it takes too long, and its rest is not read', async () => {
    client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${LENGTH}\r\n\r\n12345`);
    expect(await answer())
      .to.match(/^HTTP\/1\.1 408 /)
      .and.match(/\r\nX-Error-Code: REQUEST_TIMEOUT\r\n/)
      .and.match(/\r\n\r\n\{"error":\{"message":"The request did not arrive in time\."\}\}$/);
    client.write('67890');
    expect(await eventually('its reading ends', () => outcome)).to.equal('BODY_ABORTED');
  });

  it('is answered 400 and aborted when its body breaks the rules of HTTP', async () => {
    client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxx\r\nrubbish\r\n');
    expect(await answer()).to.match(/^HTTP\/1\.1 400 /);
    expect(await eventually('its reading ends', () => outcome)).to.equal('BODY_ABORTED');
  });

  it('is looked for more often than Node.js does by itself', async () => {
    // Its requests are late at once, and nothing but the interval decides when that is noticed.
    const byDefault = createServer({ requestTimeout: 1 });
    byDefault.on('clientError', (_, socket) => socket.destroy());
    await once(byDefault.listen(0, '127.0.0.1'), 'listening');
    const own = await listen(() => undefined, '127.0.0.1', 0, { time: systemTime, requestTimeout: 1 });
    const ports = [(byDefault.address() as AddressInfo).port, Number(new URL(own.url).port)];
    const clients = ports.map((port) => connect({ port, host: '127.0.0.1' }).on('error', () => undefined));
    try {
      for (const each of clients) each.resume().write('POST / HTTP/1.1\r\nHost: x\r\n');
      const ends = clients.map(async (each, index) => once(each, 'close').then(() => index));
      expect(await Promise.race(ends)).to.equal(1);
    } finally {
      for (const each of clients) each.destroy();
      byDefault.close();
      await own.close();
    }
  });
});
