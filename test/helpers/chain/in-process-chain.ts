import { createRequire } from 'node:module';
import hre from 'hardhat';
import { createProvider } from 'hardhat/internal/core/providers/construction';
import { LazyInitializationProviderAdapter } from 'hardhat/internal/core/providers/lazy-initialization';
import { HARDHAT_NETWORK_NAME } from 'hardhat/plugins';
import type { HardhatNetworkAccountsConfig, Network } from 'hardhat/types';

// The keys of the accounts, which take two seconds of processor time to derive.
const { networks } = createRequire(__filename)('../../../devnet/node.config.cjs') as {
  networks: { hardhat: { accounts: HardhatNetworkAccountsConfig } };
};
hre.config.networks.hardhat.accounts = networks.hardhat.accounts;

// NET may be another network. This comes first: code that has used the other one would keep it.
if (hre.network.name !== HARDHAT_NETWORK_NAME) {
  const { config, artifacts } = hre;
  const network: Network = {
    name: HARDHAT_NETWORK_NAME,
    config: config.networks[HARDHAT_NETWORK_NAME],
    provider: new LazyInitializationProviderAdapter(() =>
      createProvider(config, HARDHAT_NETWORK_NAME, artifacts),
    ),
  };
  Object.assign(hre, { network });
}

/**
 * Hardhat on its in-process chain, whatever NET is. All files of a test process share the chain: a file that
 * changes it takes a snapshot before its first test, and restores it after its last.
 */
export { hre };
