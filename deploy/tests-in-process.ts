import { TASK_TEST } from 'hardhat/builtin-tasks/task-names';
import { task } from 'hardhat/config';
import { createProvider } from 'hardhat/internal/core/providers/construction';
import { LazyInitializationProviderAdapter } from 'hardhat/internal/core/providers/lazy-initialization';
import { HARDHAT_NETWORK_NAME } from 'hardhat/plugins';
import type { HardhatRuntimeEnvironment, Network } from 'hardhat/types';

/** The tasks that run tests: Hardhat's own, and that of its coverage of contracts. */
for (const name of [TASK_TEST, 'coverage']) {
  task(name, async (args: object, hre, runSuper): Promise<unknown> => {
    useChainInProcess(hre);
    return runSuper(args);
  });
}

/**
 * Lets tests work on a chain in their process, whatever NET is, unless `--network` names another. It has to
 * come before anything uses the network: what did so keeps the other.
 */
export function useChainInProcess(hre: HardhatRuntimeEnvironment): void {
  const { config, artifacts, hardhatArguments, network } = hre;
  if (hardhatArguments.network !== undefined || network.name === HARDHAT_NETWORK_NAME) return;
  const inProcess: Network = {
    name: HARDHAT_NETWORK_NAME,
    config: config.networks[HARDHAT_NETWORK_NAME],
    provider: new LazyInitializationProviderAdapter(() =>
      createProvider(config, HARDHAT_NETWORK_NAME, artifacts),
    ),
  };
  Object.assign(hre, { network: inProcess });
}
