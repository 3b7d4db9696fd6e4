import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { findNetwork, type Network } from '../../service/chain/networks';
import { isThrottled } from '../../service/chain/refusals';
import { createRpcClient } from '../../service/chain/rpc-client';
import { listen } from '../../service/http/server';

const RANGE = { fromBlock: '0x1', toBlock: '0x9' };

describe('a provider that refuses requests as too many', () => {
  /** How many of the next requests are refused. */
  let refusals = 0;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id } = (await json(request)) as { id: number };
    if (refusals-- > 0) response.writeHead(429).end('Too Many Requests');
    else response.end(JSON.stringify({ jsonrpc: '2.0', id, result: '0x1' }));
  }

  it('is asked for a wide range again when it was the quota that it had refused one for', async () => {
    const server = await listen((request, response) => void answer(request, response), '127.0.0.1', 0);
    const client = createRpcClient(server.url, findNetwork('amoy') as Network, 'bulk');
    try {
      refusals = 2;
      const refused: unknown = await client.send('eth_getLogs', [RANGE]).catch((error: unknown) => error);
      expect(isThrottled(refused), 'refused twice: it may be too wide').to.equal(true);
      refusals = 1;
      expect(await client.send('eth_blockNumber', [])).to.equal('0x1');
      refusals = 1;
      expect(await client.send('eth_getLogs', [RANGE])).to.equal('0x1');
    } finally {
      client.destroy();
      await server.close();
    }
  });
});
