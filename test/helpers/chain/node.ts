import { join } from 'node:path';
import { startChild } from '../../../devnet/child-process';
import { nodeClient, startHardhatNode, type HardhatNode } from '../../../devnet/hardhat-node';
import { installContracts } from '../../../devnet/local-chain';
import { freePort } from '../../../devnet/place';
import { PHRASE } from './forkable-chain';

/** Starts a `hardhat node`. Port 0: a free port. `initialDate`: the time of its first block, in ISO 8601. */
export async function startNode(port = 0, chainId = 31337, initialDate?: string): Promise<HardhatNode> {
  const node = await startHardhatNode({ port, chainId, settings: initialDate ? { initialDate } : {} });
  // Writing lines for each call takes a quarter of the node's processor time.
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'hardhat_setLoggingEnabled',
    params: [false],
  });
  await fetch(node.url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  return node;
}

let chains = 0;

/**
 * Starts anvil, a node of other authors than Hardhat's, with the same accounts. Port 0: a free port. Its
 * `finalized` block is two blocks behind the head, and its `safe` block one.
 */
export async function startAnvil(port = 0, chainId = 31337): Promise<HardhatNode> {
  // The first blocks of two chains differ, also if both begin in one second.
  const gasLimit = 30_000_000 + chains++;
  const args = ['--port', port, '--chain-id', chainId, '--accounts', 20, '--slots-in-an-epoch', 1];
  args.push('--gas-limit', gasLimit);
  const script = require.resolve('@foundry-rs/anvil/bin.mjs');
  const child = startChild('anvil', script, args.map(String), {});
  const [, address = ''] = await child.lineMatching(/Listening on ([\d.]+:\d+)/);
  return {
    url: `http://${address}`,
    ended: child.ended,
    unref: () => child.unref(),
    stop: () => child.stop(),
  };
}

/**
 * Starts ganache, which counts logs within the block in `eth_getLogs` and within the transaction in receipts.
 * It has the same accounts as Hardhat's node.
 */
export async function startGanache(port = 0, chainId = 31337): Promise<HardhatNode> {
  const free = port === 0 ? await freePort(0) : port;
  const args = ['--server.host', '127.0.0.1', '--server.port', free, '--chain.chainId', chainId];
  const accounts = ['--wallet.mnemonic', PHRASE, '--wallet.totalAccounts', 20];
  const script = require.resolve('ganache/dist/node/cli.js');
  const child = startChild('ganache', script, [...args, ...accounts].map(String), {});
  await child.lineMatching(/RPC Listening on/);
  return {
    url: `http://127.0.0.1:${free}`,
    ended: child.ended,
    unref: () => child.unref(),
    stop: () => child.stop(),
  };
}

/** Starts a stand-in for a network without EIP-1559 (legacy-gas.config.cjs). */
export function startLegacyGasNode(chainId: number): Promise<HardhatNode> {
  return startHardhatNode({ port: 0, chainId, configFile: join(__dirname, 'legacy-gas.config.cjs') });
}

/** Deploys one registry to the chain of a local node. On a new chain it always has the same address. */
export async function installRegistry(nodeUrl: string): Promise<string> {
  const chain = nodeClient(nodeUrl);
  try {
    return await (
      await installContracts(chain)
    )();
  } finally {
    chain.destroy();
  }
}
