import type { OutgoingHttpHeaders, RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { isError } from 'ethers';
import { systemTime, type Time } from '../../service/base/time';
import { connectNode, type Chain } from '../../service/chain/chain';
import { LARGEST_ANSWER_BYTES, isRangeRefused, nodeErrorOf } from '../../service/chain/node-errors';
import { eventually } from '../helpers/eventually';
import { serve as startServer, type TestServer } from '../helpers/http-server';
import { tellOfRequests, VirtualTime } from '../helpers/virtual-time';
import { owned } from '../helpers/resources';

const TIMEOUT_MS = 100;
const TRICKLE_MS = 20;
/** For answers that are expected. */
const LONG_MS = 60_000;

describe('the RPC client over HTTP', () => {
  let server: TestServer;
  let open: Set<Socket>;
  let client: Chain;

  async function serve(
    listener: RequestListener,
    timeoutMs = TIMEOUT_MS,
    time: Time = systemTime,
  ): Promise<void> {
    const sockets = new Set<Socket>();
    open = sockets;
    server = await startServer((request, response) => {
      sockets.add(request.socket);
      request.socket.once('close', () => sockets.delete(request.socket));
      listener(request, response);
    });
    client = clientOf('/v3?key=1', timeoutMs, time);
  }

  function clientOf(path: string, timeoutMs: number, time: Time = systemTime): Chain {
    const url = `${server.url.replace('//', '//user:key@')}${path}`;
    const made = connectNode(url, {}, time, 'single', timeoutMs);
    return owned(`client of ${path}`, made, 'close');
  }

  const asked = (method = 'eth_chainId'): Promise<unknown> =>
    client.send(method, []).catch((error: unknown) => error);

  it('closes the connection of each request that is not answered in time', async () => {
    await serve(() => undefined);
    const errors = await Promise.all([asked(), asked(), asked()]);
    expect(errors.every((error) => isError(error, 'TIMEOUT'))).to.equal(true);
    await eventually('all are closed', () => open.size === 0);
  });

  it('does not wait for an answer that arrives byte by byte', async () => {
    await serve((_, response) => {
      // eslint-disable-next-line no-restricted-syntax -- real time: bytes arrive one after the other.
      const trickle = setInterval(() => response.write(' '), TRICKLE_MS);
      response.on('close', () => clearInterval(trickle));
    });
    expect(isError(await asked(), 'TIMEOUT')).to.equal(true);
    await eventually('it is closed', () => open.size === 0);
  });

  it('reads a compressed answer, and does not wait for one that arrives byte by byte', async () => {
    const answer = gzipSync('{"jsonrpc":"2.0","id":1,"result":"0x7a69"}');
    let isSlow = false;
    await serve((_, response) => {
      response.setHeader('Content-Encoding', 'gzip');
      if (isSlow) response.write(answer.subarray(0, 10));
      else response.end(answer);
    }, 5 * TIMEOUT_MS);
    expect(await asked()).to.equal('0x7a69');
    isSlow = true;
    expect(isError(await asked(), 'TIMEOUT')).to.equal(true);
    await eventually('it is closed', () => open.size === 0);
  });

  it('sends the credentials of the URL, and reads the answer', async () => {
    const seen: (string | undefined)[] = [];
    await serve((request, response) => {
      seen.push(request.headers.authorization, request.url);
      response.end('{"jsonrpc":"2.0","id":1,"result":"0x7a69"}');
    }, LONG_MS);
    expect(await asked()).to.equal('0x7a69');
    expect(seen).to.deep.equal([`Basic ${Buffer.from('user:key').toString('base64')}`, '/v3?key=1']);
  });

  it('reports an answer that is too large, and asks for it once', async () => {
    const large = Buffer.alloc(LARGEST_ANSWER_BYTES + 1, ' ');
    const answers: [Buffer, OutgoingHttpHeaders][] = [
      [large, {}],
      [gzipSync(large), { 'content-encoding': 'gzip' }],
      // One byte of it would take 40 bytes of memory.
      [Buffer.alloc(2_000_000, '['), {}],
    ];
    let requests = 0;
    await serve((_, response) => {
      const [body, headers] = answers[requests++] ?? [];
      response.writeHead(200, headers).end(body);
    }, LONG_MS);
    for (const error of [await asked(), await asked(), await asked()]) {
      expect(error).to.include({ code: 'RPC_UNREACHABLE', retryable: true });
      expect((error as Error).message)
        .to.contain('64 MB')
        .and.to.contain('RPC_URL');
      expect(isRangeRefused(error)).to.equal(true);
    }
    expect(requests).to.equal(answers.length);
  });

  it('reads no more than two large answers at once, and closes their connections', async () => {
    const sockets: Socket[] = [];
    await serve((_, response) => {
      sockets.push(response.socket as Socket);
      const chunk = Buffer.alloc(1_000_000, ' ');
      Readable.from(Array<Buffer>(70).fill(chunk)).pipe(response);
    }, LONG_MS);
    const all = Array.from({ length: 4 }, () => asked());
    await Promise.race(all);
    // The buffers of its sockets hold the bytes that a waiting answer has sent.
    const read = sockets.filter(({ bytesWritten }) => bytesWritten > LARGEST_ANSWER_BYTES / 2);
    expect(read).to.have.lengthOf.within(1, 2);
    for (const error of await Promise.all(all)) expect(error).to.have.property('code', 'RPC_UNREACHABLE');
    await eventually('all are closed', () => open.size === 0);
  });

  it('keeps the status of a refusal that is too large to be read', async () => {
    const body = gzipSync(Buffer.alloc(1_000_000, ' '));
    await serve((_, response) => response.writeHead(413, { 'content-encoding': 'gzip' }).end(body), LONG_MS);
    expect(isRangeRefused(await asked())).to.equal(true);
  });

  describe('with an answer that is no answer to the request', () => {
    const one = (parts: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, ...parts });
    const CASES: [what: string, body: string, method?: string][] = [
      ['is HTML', '<html>'],
      ['is empty', ''],
      ['is cut', one({ result: '0x1' }).slice(0, -2)],
      ['is []', '[]'],
      ['is [null]', '[null]'],
      ['is null', 'null'],
      ['is text', '"0x1"'],
      ['is a number', '1'],
      ['is {}', '{}'],
      ['has another id', one({ id: 7, result: '0x1' })],
      ['has an id of another type', one({ id: '1', result: '0x1' })],
      ['has no result', one({})],
      ['has an error without a message', one({ error: {} })],
      ['has an error that is text', one({ error: 'no' })],
      ['has a chain id that is a number', one({ result: 31337 })],
      ['has an empty quantity', one({ result: '0x' })],
      ['has a quantity of more than 256 bits', one({ result: `0x${'f'.repeat(65)}` }), 'eth_estimateGas'],
      ['has a count that is null', one({ result: null }), 'eth_getTransactionCount'],
      ['has data that is an object', one({ result: {} }), 'eth_call'],
      ['has data that is null', one({ result: null }), 'eth_call'],
      ['has half a byte of data', one({ result: '0x123' }), 'eth_call'],
      ['has code that is not hexadecimal', one({ result: '0xcode' }), 'eth_getCode'],
      ['has logs that are an object', one({ result: {} }), 'eth_getLogs'],
      ['has a block that is text', one({ result: '0x1' }), 'eth_getBlockByNumber'],
      ['has a receipt that is a list', one({ result: [] }), 'eth_getTransactionReceipt'],
      ['has a hash that is true', one({ result: true }), 'eth_sendRawTransaction'],
    ];
    // Together, because each request is repeated once after a pause.
    it('blames the node in each case', async () => {
      await serve((request, response) => {
        const [, body] = CASES[Number(request.url?.slice(1))] ?? [];
        void json(request).then(() => response.end(body));
      }, LONG_MS);
      const blamed = CASES.map(async ([what, , method = 'eth_chainId'], index) => {
        const one = clientOf(`/${index}`, LONG_MS);
        const error: unknown = await one.send(method, []).catch((thrown: unknown) => thrown);
        expect(error, `the answer ${what}`).to.include({ code: 'ANSWER_MALFORMED', retryable: true });
      });
      await Promise.all(blamed);
    });

    it('blames the node when the answer is not gzip, but says so', async () => {
      await serve((_, response) => response.setHeader('content-encoding', 'gzip').end('{}'), LONG_MS);
      expect(await asked()).to.include({ code: 'ANSWER_MALFORMED', retryable: true });
    });
  });

  it("reads a node's error that has no id, and a result beside an error that is null", async () => {
    const error = { code: -32005, message: 'quota exceeded' };
    let answer: object = { id: null, error };
    // The words are those of a limit: the request is repeated after pauses of seconds.
    const time = new VirtualTime();
    await serve((_, response) => response.end(JSON.stringify(answer)), LONG_MS, time);
    tellOfRequests(client, time);
    expect(nodeErrorOf(await time.settled(asked()))).to.equal('quota exceeded');
    answer = { id: 2, result: '0x1', error: null };
    expect(await asked()).to.equal('0x1');
  });
});
