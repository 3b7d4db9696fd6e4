import { subtask, task } from 'hardhat/config';
import { readSettings } from '../../service/config/config';
import { ServiceError } from '../../service/base/errors';
import { errorText } from '../../cli/errors';
import { makeBindings } from '../contract-bindings';
import { explorerError, networkToVerifyOn } from '../explorers';
import { checkNode } from '../registry/node';
import { withReadableErrors } from '../task-error';

/**
 * Extends the toolbox's `npx hardhat verify`: it publishes the source of a contract that `deploy
 * --with-infrastructure` installed on the network's explorer.
 */
task('verify', async (args: { listNetworks: boolean }, hre, runSuper): Promise<void> => {
  if (!args.listNetworks) {
    const { config, hardhatArguments } = hre;
    await withReadableErrors(hardhatArguments, async () => {
      const { settings } = readSettings();
      const network = networkToVerifyOn(hre.network.name, settings);
      await checkNode(network, settings);
      config.etherscan.enabled = network.explorerApi === 'etherscan';
      config.blockscout.enabled = network.explorerApi === 'blockscout';
    });
    // hardhat-verify recognises a deployed contract by its compiled code.
    await makeBindings(hre);
  }
  await runSuper(args);
});

/** The task prints the message of an error thrown here, and ends the command with 1. */
subtask('verify:etherscan', async (args: object, _hre, runSuper): Promise<void> => {
  try {
    await runSuper(args);
  } catch (thrown) {
    const error = explorerError(thrown);
    throw error instanceof ServiceError ? new Error(errorText(error)) : error;
  }
});
