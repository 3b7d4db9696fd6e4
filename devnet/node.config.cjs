const { env } = require('node:process');

/**
 * The settings of hardhat.config.ts that `hardhat node` needs. Without the commands, it starts in half the
 * time. DEVNET_NETWORK: the settings of its network, in JSON.
 */
module.exports = {
  solidity: '0.8.22',
  networks: { hardhat: JSON.parse(env.DEVNET_NETWORK) },
};
