const { env } = require('node:process');

/**
 * The settings of hardhat.config.ts that `hardhat node` needs. Without the commands, it starts in half the
 * time. DEVNET_CHAIN_START: the time of the genesis block, which a chain that is mined again needs.
 * DEVNET_FREE_GAS: blocks without a base fee, so that transactions with a gas price of 0 are mined.
 */
module.exports = {
  solidity: '0.8.22',
  networks: {
    hardhat: {
      chainId: Number(env.LOCAL_CHAIN_ID),
      ...(env.DEVNET_CHAIN_START && { initialDate: env.DEVNET_CHAIN_START }),
      ...(env.DEVNET_FREE_GAS && { initialBaseFeePerGas: 0 }),
    },
  },
};
