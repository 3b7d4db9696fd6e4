import { createHash, randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { readBody } from '../../service/http/read-body';

const MEGABYTE = 1024 * 1024;
const PIECE = 64 * 1024;

describe('reading a large body', () => {
  it('returns all bytes in order, and yields to the event loop after each megabyte', async () => {
    const body = randomBytes(20 * MEGABYTE + 7);
    const source = new PassThrough();
    const request = Object.assign(source, { headers: {}, complete: true }) as unknown as IncomingMessage;
    const read = readBody(request, body.length, () => undefined);
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
});
