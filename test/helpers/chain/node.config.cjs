const { env } = require('node:process');

/**
 * The settings of hardhat.config.ts that `hardhat node` needs. Without the commands, it starts in half the
 * time.
 */
module.exports = {
  solidity: '0.8.22',
  networks: { hardhat: { chainId: Number(env.LOCAL_CHAIN_ID) } },
};
