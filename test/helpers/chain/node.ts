import { join } from 'node:path';
import { startChild } from '../../../devnet/child-process';
import { nodeClient, startHardhatNode, type HardhatNode } from '../../../devnet/hardhat-node';
import { installContracts } from '../../../devnet/local-chain';

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

/**
 * Starts anvil, a node of other authors than Hardhat's, with the same accounts. Port 0: a free port. Its
 * `finalized` block is two blocks behind the head, and its `safe` block one.
 */
export async function startAnvil(port = 0, chainId = 31337): Promise<HardhatNode> {
  const args = ['--port', port, '--chain-id', chainId, '--accounts', 20, '--slots-in-an-epoch', 1];
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
