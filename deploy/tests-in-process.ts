import { createRequire } from 'node:module';
import { TASK_TEST } from 'hardhat/builtin-tasks/task-names';
import { task } from 'hardhat/config';
import { createProvider } from 'hardhat/internal/core/providers/construction';
import { LazyInitializationProviderAdapter } from 'hardhat/internal/core/providers/lazy-initialization';
import { HARDHAT_NETWORK_NAME } from 'hardhat/plugins';
import type { HardhatRuntimeEnvironment, Network } from 'hardhat/types';

/** The tasks that run tests: Hardhat's own, and that of its contract coverage. */
for (const name of [TASK_TEST, 'coverage']) {
  task(name, async (args: object, hre, runSuper): Promise<unknown> => {
    useChainInProcess(hre);
    // Service processes and signing threads run the build.
    createRequire(__filename)('../cli/build-if-changed.cjs');
    return runSuper(args);
  });
}

/**
 * Lets tests use the in-process chain, whatever NET is, unless `--network` names another. Must run before any
 * code uses the network: such code would keep the other one.
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
