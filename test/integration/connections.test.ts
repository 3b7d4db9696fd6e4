import { once } from 'node:events';
import { request as httpRequest, type RequestListener, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { mostConnections, requestsAtOnce } from '../../service/composition/app';
import { listen, type HttpServer } from '../../service/http/server';
import { createLogger } from '../../service/base/logger';
import { eventually } from '../helpers/eventually';
import { owned } from '../helpers/resources';

const MOST = 5;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('the HTTP server with limited connections', () => {
  let server: HttpServer;
  let sockets: Socket[];
  let underWay: ServerResponse[];
  let lines: object[];
  /** Whether requests are answered at once. */
  let isQuick: boolean;
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as object) };

  beforeEach(async () => {
    sockets = [];
    underWay = [];
    lines = [];
    isQuick = true;
    const logger = createLogger({ level: 'warn', mask: (text) => text, destination });
    const handle: RequestListener = (_, response) =>
      void (isQuick ? response.end('ok') : underWay.push(response));
    const limited = await listen(handle, '127.0.0.1', 0, {
      time: systemTime,
      connections: { most: MOST, logger },
    });
    server = owned('the limited server', limited, 'close');
  });

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    for (const response of underWay) response.end();
    await server.close();
  });

  async function open(): Promise<Socket> {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined).resume();
    await once(socket, 'connect');
    return socket;
  }
  const isOpen = (socket: Socket): boolean => !socket.closed;
  async function get(): Promise<number | undefined> {
    const request = httpRequest(server.url, { agent: false }).end();
    const [response] = (await once(request, 'response')) as [{ statusCode?: number; resume(): void }];
    response.resume();
    return response.statusCode;
  }

  it('closes soon although a connection has sent no request', async function () {
    this.timeout(10_000);
    await open();
    await server.close();
  });

  it('answers requests while many idle connections are open, and closes the oldest of them', async () => {
    for (let count = 0; count < 3 * MOST; count++) await open();
    for (let count = 0; count < MOST; count++) expect(await get()).to.equal(200);
    await eventually('the oldest are closed', () => sockets.filter(isOpen).length < MOST);
    expect(isOpen(sockets[0] as Socket)).to.equal(false);
    expect(lines).to.deep.equal([]);
  });

  it('closes no connection that waits for an answer, even after earlier requests', async () => {
    const socket = await open();
    socket.write(REQUEST);
    await once(socket, 'data');
    isQuick = false;
    socket.write(REQUEST.repeat(2));
    await eventually('both are under way', () => underWay.length === 2);
    underWay[0]?.end('first');
    isQuick = true;
    for (let count = 0; count < 3 * MOST; count++) await open();
    expect(await get()).to.equal(200);
    expect(isOpen(socket)).to.equal(true);
    const answered = once(socket, 'data');
    underWay[1]?.end('second');
    expect(String(await answered)).to.contain('second');
  });

  it('counts a request with an unknown expectation as one under way', async () => {
    isQuick = false;
    const socket = await open();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nExpect: something\r\n\r\n');
    await eventually('it is under way', () => underWay.length === 1);
    for (let count = 0; count < 3 * MOST; count++) await open();
    await eventually('the oldest of the others is closed', () => sockets[1]?.closed);
    expect(isOpen(socket)).to.equal(true);
  });

  it('writes nothing into an answer under way when rubbish follows the request', async () => {
    isQuick = false;
    const socket = await open();
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write(`${REQUEST}rubbish\r\n\r\n`);
    await once(socket, 'close');
    expect(Buffer.concat(chunks).toString()).to.equal('');
  });

  it('logs data that is not a request, with the request id of its answer', async () => {
    const socket = await open();
    socket.write('rubbish\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    const [, requestId] = /X-Request-Id: (\S+)/.exec(answer.toString()) ?? [];
    expect(requestId).to.be.a('string');
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ level: 'warn', code: 'REQUEST_MALFORMED', status: 400, requestId });
  });

  it('refuses connections while all others await answers, warns once, then accepts them again', async () => {
    isQuick = false;
    for (let count = 0; count < MOST; count++) (await open()).write(REQUEST);
    await eventually('all are under way', () => underWay.length === MOST);
    const late = [await open(), await open()];
    await eventually('they are turned away', () => late.every((socket) => !isOpen(socket)));
    expect(sockets.filter(isOpen)).to.have.length(MOST);
    expect(lines).to.have.length(1);
    isQuick = true;
    underWay[0]?.end();
    await eventually('there is room again', () => get().catch(() => undefined));
  });
});

describe('the connection limits of the service', () => {
  const of = (openFiles: number, registries = 1) =>
    mostConnections({ signingThreads: 2, registries }, openFiles);

  it('leave descriptors for the nodes, the database and the threads', () => {
    for (const [openFiles, least] of [
      [200, 40],
      [1_024, 300],
    ] as const) {
      // Deliveries have as many as callers, and each caller may need a connection to the node.
      expect(3 * of(openFiles)).to.be.within(3 * least, openFiles - 70);
    }
    expect(of(1_024, 2)).to.be.below(of(1_024));
  });

  it('stay between 16 and 10,000, and are never all taken by those who wait', () => {
    expect(of(64)).to.equal(16);
    expect(of(Infinity)).to.equal(10_000);
    for (const [callers, callersAtOnce, waitsAtOnce] of [
      [of(64), 6, 2],
      [of(200), 23, 11],
      [of(Infinity), 6_662, 3_330],
    ] as const)
      expect(requestsAtOnce(callers)).to.deep.equal({ callersAtOnce, waitsAtOnce });
  });
});
