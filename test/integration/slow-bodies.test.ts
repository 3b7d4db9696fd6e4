import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { eventually } from '../helpers/eventually';
import {
  accepting,
  mintedDocument,
  REQUEST,
  startHttpApp,
  type RunningHttpApp,
} from '../helpers/processes/http-app';
import { rawCreate, type RawRequest } from '../helpers/processes/raw-request';
import { stopLater } from '../helpers/resources';
import { VirtualTime } from '../helpers/virtual-time';

/** The least progress of a body: fewer bytes, in a shorter time, than by default. */
const LEAST = { bytes: 1_000, withinMs: 300 };
const PLACES = 2;
const LARGE_BYTES = 2 * 1024 * 1024;
const MEDIUM_BYTES = 100 * 1024;

describe('a body that arrives slowly', () => {
  let app: RunningHttpApp;
  let issued: number;
  let time: VirtualTime;
  /** The server's sides of the connections of requests, in the order of their heads. */
  let arriving: Socket[];
  const noteRequest = (message: unknown): void => void arriving.push((message as { socket: Socket }).socket);

  before(() => {
    subscribe('http.server.request.start', noteRequest);
    stopLater('noting requests', () => unsubscribe('http.server.request.start', noteRequest));
  });

  beforeEach(async () => {
    [issued, arriving, time] = [0, [], new VirtualTime()];
    const few = { permits: PLACES };
    app = await startHttpApp({
      time,
      issuing: accepting(async () => (issued++, mintedDocument())),
      bodyLimits: { large: few, medium: few, least: LEAST },
    });
  });

  const begin = (length: number, headers = {}): Promise<RawRequest> =>
    rawCreate(app.url, { 'Content-Length': length, ...headers });
  /** Waits until the server has so many requests, and has taken all that was sent on these connections. */
  const untilArrived = (requests: number, sent: readonly RawRequest[]): Promise<unknown> =>
    eventually('it arrived', () => {
      const taken = arriving.reduce((bytes, socket) => bytes + socket.bytesRead, 0);
      const written = sent.reduce((bytes, { socket }) => bytes + socket.bytesWritten, 0);
      return arriving.length >= requests && taken >= written;
    });

  for (const [size, length] of [
    ['over 1 MB', LARGE_BYTES],
    ['over 64 KB', MEDIUM_BYTES],
  ] as const)
    it(`is answered 408 and gives its permit to the next body (${size})`, async () => {
      const stalled = await Promise.all(Array.from({ length: PLACES }, () => begin(length)));
      for (const { socket } of stalled) socket.write('x');
      await untilArrived(PLACES, stalled);
      await time.pass(LEAST.withinMs / 4);
      const asked = fetch(`${app.url}/create/BILL_OF_LADING`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: Buffer.alloc(length, ' '),
      });
      await untilArrived(PLACES + 1, stalled);
      expect(stalled.map((one) => one.answer())).to.deep.equal(Array(PLACES).fill(''));
      await time.pass(LEAST.withinMs);
      expect((await asked).status).to.equal(200);
      await Promise.all(stalled.map((one) => one.ended()));
      for (const one of stalled) {
        expect(one.answer())
          .to.match(/^HTTP\/1\.1 408 /)
          .and.match(/\r\nConnection: close\r\n/i)
          .and.match(/\r\n\r\n\{"error":\{"message":"[^"]+"\}\}$/);
      }
      expect(issued).to.equal(1);
      const lines = app.log.filter(({ code }) => code === 'BODY_TOO_SLOW');
      expect(lines).to.have.length(PLACES);
      for (const line of lines) expect(line).to.include({ level: 'warn', status: 408 });
    });

  it('is measured as it arrives, not as it decodes', async () => {
    const stalled = await begin(LARGE_BYTES, { 'Content-Encoding': 'gzip' });
    const packed = gzipSync(Buffer.alloc(500 * LEAST.bytes));
    expect(packed.length).to.be.lessThan(LEAST.bytes);
    stalled.socket.write(packed.subarray(0, -1));
    await untilArrived(1, [stalled]);
    await time.pass(LEAST.withinMs);
    await stalled.ended();
    expect(stalled.answer()).to.match(/^HTTP\/1\.1 408 /);
  });

  it('is read as long as enough of it arrives', async () => {
    const slow = await begin(MEDIUM_BYTES);
    const pieces = 5;
    for (let piece = 0; piece < pieces; piece++) {
      slow.socket.write(Buffer.alloc(MEDIUM_BYTES / pieces, ' '));
      await untilArrived(1, [slow]);
      await time.pass(LEAST.withinMs / 2);
    }
    await eventually('it is answered', () => slow.answer().startsWith('HTTP/1.1 200 '));
    slow.socket.destroy();
  });

  it('must be complete in time when it is small, and may arrive in pieces within that time', async () => {
    const stalled = await begin(2);
    stalled.socket.write('{');
    await untilArrived(1, [stalled]);
    await time.pass(LEAST.withinMs);
    await stalled.ended();
    expect(stalled.answer())
      .to.match(/^HTTP\/1\.1 408 /)
      .and.contain('X-Error-Code: BODY_TOO_SLOW');
    expect(issued).to.equal(0);
    const slow = await begin(REQUEST.length);
    await untilArrived(2, []);
    for (const piece of [REQUEST.slice(0, 1), REQUEST.slice(1)]) {
      await time.pass(LEAST.withinMs / 4);
      slow.socket.write(piece);
    }
    await eventually('it is answered', () => slow.answer().startsWith('HTTP/1.1 200 '));
    slow.socket.destroy();
  });
});
