import { Agent } from 'node:http';
import { FetchRequest, getAddress, JsonRpcProvider, type JsonRpcApiProviderOptions } from 'ethers';

/**
 * A client of a local node without a cache and with a connection for each request. The node ends idle
 * connections after five seconds, and a request that is sent at that moment would fail.
 */
export function nodeClient(
  url: string,
  chainId = 31337,
  options: JsonRpcApiProviderOptions = {},
): JsonRpcProvider {
  const request = new FetchRequest(url);
  request.getUrlFunc = FetchRequest.createGetUrlFunc({ agent: new Agent({ keepAlive: false }) });
  return new JsonRpcProvider(request, chainId, { cacheTimeout: -1, staticNetwork: true, ...options });
}

/** The addresses of the accounts that a local node signs for. */
export async function accountsOf(client: JsonRpcProvider): Promise<string[]> {
  return ((await client.send('eth_accounts', [])) as string[]).map(getAddress);
}
