import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { isError } from 'ethers';
import { HttpRpcClient } from '../../service/chain/http-rpc-client';
import { eventually } from '../helpers/eventually';

const CHAIN_ID = 31337;
const TIMEOUT_MS = 100;
const TRICKLE_MS = 20;

describe('the RPC client over HTTP', () => {
  let server: Server;
  let open: Set<Socket>;
  let client: HttpRpcClient;

  async function serve(listener: RequestListener): Promise<void> {
    open = new Set();
    server = createServer(listener).listen(0, '127.0.0.1');
    server.on('connection', (socket: Socket) => {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    });
    await once(server, 'listening');
    const url = `http://user:key@127.0.0.1:${(server.address() as AddressInfo).port}/v3?key=1`;
    const options = { staticNetwork: true, batchMaxCount: 1, cacheTimeout: -1 };
    client = new HttpRpcClient(url, CHAIN_ID, options, TIMEOUT_MS);
  }

  afterEach(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });

  const asked = (): Promise<unknown> => client.send('eth_chainId', []).catch((error: unknown) => error);

  it('closes the connection of each request that is not answered in time', async () => {
    await serve(() => undefined);
    const errors = await Promise.all([asked(), asked(), asked()]);
    expect(errors.every((error) => isError(error, 'TIMEOUT'))).to.equal(true);
    await eventually('all are closed', () => open.size === 0);
  });

  it('does not wait for an answer that arrives byte by byte', async () => {
    await serve((_, response) => {
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
    });
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
    });
    expect(await asked()).to.equal('0x7a69');
    expect(seen).to.deep.equal([`Basic ${Buffer.from('user:key').toString('base64')}`, '/v3?key=1']);
  });
});
