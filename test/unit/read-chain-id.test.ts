import { expect } from 'chai';
import { findNetwork, type Network } from '../../service/chain/networks';
import { readChainId } from '../../service/chain/reach-node';
import { connectNode } from '../../service/chain/chain';
import type { ServiceError } from '../../service/base/errors';
import { rpcUrlsOf } from '../../service/config/settings';
import { errorOf } from '../helpers/error-of';
import { serve } from '../helpers/http-server';
import { tellOfRequests, VirtualTime } from '../helpers/virtual-time';
import { owned } from '../helpers/resources';

const KEY = 'marked-key-0123456789';

describe('reading the chain id of a node', () => {
  /** The error when the node behind the network's own URL answers with this status and body. */
  async function failureOf(status: number, name: string, body = KEY): Promise<ServiceError> {
    const network = findNetwork(name) as Network;
    const [url] = rpcUrlsOf(network, network.rpcKey ? { [network.rpcKey]: KEY } : {});
    await using server = await serve((_request, response) => response.writeHead(status).end(body));
    // After a refusal, the pace is one request a second.
    const time = new VirtualTime();
    await using client = owned('client', connectNode(server.url, {}, time, 'bulk'), 'close');
    tellOfRequests(client, time);
    return await time.settled(errorOf(readChainId(client, url, network)));
  }

  for (const [name, setting] of [
    ['amoy', 'PROVIDER_API_KEY'],
    ['stability', 'NETWORK_A_API_KEY'],
    ['stabilitytestnet', 'NETWORK_A_TESTNET_API_KEY'],
  ] as const) {
    it(`fails with the name of ${setting}, but not its value, if ${name} refuses the key`, async () => {
      for (const status of [401, 403]) {
        const { code, message, retryable } = await failureOf(status, name);
        expect({ code, retryable }).to.deep.equal({ code: 'RPC_KEY_REFUSED', retryable: true });
        expect(message).to.contain(`Check ${setting}, and that it is allowed to use ${name}.`);
        expect(message).not.to.contain(KEY);
      }
    });
  }

  it('fails with the name of RPC_URL if a node without a key refuses access', async () => {
    const { code, message } = await failureOf(403, 'xdc');
    expect(code).to.equal('RPC_KEY_REFUSED');
    expect(message).to.contain('set RPC_URL to another node').and.not.to.contain('undefined');
  });

  it("reports an answer that is not a node's, and a node's error with the key masked", async () => {
    const error = { code: -32000, message: `no access with ${KEY}` };
    for (const [body, text] of [
      ['<html>', 'answers, but not like a node.'],
      ['{}', 'answers, but not like a node.'],
      [JSON.stringify({ error: `no ${KEY}` }), 'answers, but not like a node: no [secret].'],
      [JSON.stringify({ jsonrpc: '2.0', id: 1, error }), 'answers with an error: no access with [secret].'],
    ] as const) {
      const { code, message } = await failureOf(200, 'amoy', body);
      expect(code).to.equal('RPC_UNREACHABLE');
      expect(message).to.contain(text);
    }
  });

  it('reports a used-up quota, too many requests and a status 500, without the key', async () => {
    for (const [status, text] of [
      [402, 'quota is used up'],
      [429, 'too many requests'],
      [500, 'answers 500, not like a node'],
    ] as const) {
      const { code, message } = await failureOf(status, 'amoy');
      expect(code).to.equal('RPC_UNREACHABLE');
      expect(message).to.contain(text).and.not.to.contain(KEY);
    }
  });
});
