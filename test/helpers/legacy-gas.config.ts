import type { HardhatUserConfig } from 'hardhat/config';
import { readSettings } from '../../service/config';
import { PROJECT_ROOT } from '../../service/project-root';

/** `hardhat node` as a network is that prices gas the old way: blocks have no base fee, transactions of EIP-1559 are refused, and a gas price of 0 is taken. */
const config: HardhatUserConfig = {
  solidity: '0.8.22',
  networks: {
    hardhat: { chainId: Number(readSettings().settings.LOCAL_CHAIN_ID), hardfork: 'berlin', minGasPrice: 0 },
  },
  paths: { root: PROJECT_ROOT },
};

export default config;
