const { solidity, networks } = require('./node.config.cjs');

/**
 * A network that prices gas the old way, as Stability's and XDC's do: blocks have no base fee, transactions
 * of type 2 are refused, and those at a gas price of 0 are mined, whatever the sender owns.
 */
module.exports = {
  solidity,
  networks: { hardhat: { ...networks.hardhat, hardfork: 'berlin', minGasPrice: 0 } },
};
