const { solidity, networks } = require('../../../devnet/node.config.cjs');

/**
 * A network with legacy gas prices, like Stability and XDC: blocks have no base fee, transactions of type 2
 * are refused, and those with a gas price of 0 are mined even from empty accounts.
 */
module.exports = {
  solidity,
  networks: { hardhat: { ...networks.hardhat, hardfork: 'berlin', minGasPrice: 0 } },
};
