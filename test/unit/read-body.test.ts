import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { queryObjects } from 'node:v8';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { RequestError } from '../../service/base/errors';
import { newDeferred } from '../../service/base/time';
import { readBody } from '../../service/http/read-body';
import { serve } from '../helpers/http-server';

const MEGABYTE = 1024 * 1024;
const PIECE = 64 * 1024;

describe('reading a large body', () => {
  it('returns all bytes in order, and yields to the event loop after each megabyte', async () => {
    const body = randomBytes(20 * MEGABYTE + 7);
    const source = new PassThrough();
    const request = Object.assign(source, { headers: {}, complete: true }) as unknown as IncomingMessage;
    const read = readBody(request, body.length);
    let turns = NaN;
    source.on('end', () => {
      turns = 0;
      const count = (): void => void (turns++, setImmediate(count).unref());
      setImmediate(count).unref();
    });
    for (let from = 0; from < body.length; from += PIECE) source.write(body.subarray(from, from + PIECE));
    source.end();
    const bytes = await read;
    const turnsTaken = turns;
    expect(turnsTaken).to.be.at.least(19);
    expect(bytes.buffer.byteLength).to.equal(body.length);
    const hash = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');
    expect(hash(bytes)).to.equal(hash(body));
  });

  it('keeps few chunks of a body that comes in single bytes, and joins them in order', async () => {
    const source = new PassThrough();
    const request = Object.assign(source, { headers: {}, complete: true }) as unknown as IncomingMessage;
    const read = readBody(request, MEGABYTE);
    const buffers = (): number => queryObjects(Buffer, { format: 'count' });
    const before = buffers();
    const body = randomBytes(100_000);
    for (const byte of body) source.write(Buffer.of(byte));
    expect(buffers() - before).to.be.below(2_000);
    source.end(body);
    expect(Buffer.compare(await read, Buffer.concat([body, body]))).to.equal(0);
  });

  it('ends when the caller closes the connection right after a compressed body', async function () {
    this.timeout(20_000);
    const body = gzipSync(randomBytes(MEGABYTE), { level: 0 });
    const outcome = newDeferred<string>();
    const server = await serve((request) => {
      readBody(request, 2 * MEGABYTE).then(
        ({ length }) => outcome.resolve(`${length} bytes`),
        ({ code }: RequestError) => outcome.resolve(code),
      );
    });
    const socket = connect(server.port, '127.0.0.1');
    const head = `Host: x\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}`;
    socket.write(`POST / HTTP/1.1\r\n${head}\r\n\r\n`);
    socket.on('error', () => undefined).end(body);
    try {
      expect(await outcome.promise).to.equal('BODY_ABORTED');
    } finally {
      socket.destroy();
      await server.close();
    }
  });
});
