import { join } from 'node:path';
import { startHardhatNode, type HardhatNode } from '../../../devnet/hardhat-node';

/** Starts a `hardhat node`. Port 0: a free port. */
export function startNode(port = 0, chainId = 31337): Promise<HardhatNode> {
  return startHardhatNode({ port, chainId });
}

/** Starts a stand-in for a network without EIP-1559 (legacy-gas.config.cjs). */
export function startLegacyGasNode(chainId: number): Promise<HardhatNode> {
  return startHardhatNode({ port: 0, chainId, configFile: join(__dirname, 'legacy-gas.config.cjs') });
}
