import { join } from 'node:path';
import { nodeClient, startHardhatNode, type HardhatNode } from '../../../devnet/hardhat-node';
import { installContracts } from '../../../devnet/local-chain';

/** Starts a `hardhat node`. Port 0: a free port. */
export async function startNode(port = 0, chainId = 31337): Promise<HardhatNode> {
  const node = await startHardhatNode({ port, chainId });
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
