import { join } from 'node:path';
import { startHardhatNode, type HardhatNode } from '../../deploy/devnet/hardhat-node';
import { PROJECT_ROOT } from '../../service/project-root';

const CONFIG = join(PROJECT_ROOT, 'test/helpers/legacy-gas.config.ts');

/**
 * Starts a stand-in of a network without EIP-1559, as Stability's and XDC's are: blocks have no base fee, transactions of type 2 are
 * refused, and those at a gas price of 0 are mined, whatever the sender owns.
 */
export function startLegacyGasNode(chainId: number): Promise<HardhatNode> {
  return startHardhatNode({ port: 0, chainId, configFile: CONFIG });
}
