import '@nomicfoundation/hardhat-toolbox';
import type { HardhatUserConfig } from 'hardhat/config';
import { maskStandardError } from './cli/errors';
import { SOLIDITY_VERSION } from './deploy/compile';
import { explorers } from './deploy/explorers';
import { hardhatNetworks } from './deploy/networks';
import { readable } from './deploy/tasks';
import { reachDistantHosts } from './service/base/distant-hosts';
import { readSettings } from './service/config/config';

function configuration(): HardhatUserConfig {
  try {
    // Must come first: no later output may contain a secret.
    maskStandardError();
    reachDistantHosts();
    const { settings } = readSettings();
    return {
      solidity: {
        version: SOLIDITY_VERSION,
        // The settings that the published contracts were built with; test/unit/bytecode.test.ts checks the
        // result.
        settings: { optimizer: { enabled: false }, evmVersion: 'paris' },
      },
      ...hardhatNetworks(settings),
      ...explorers(settings),
      typechain: { outDir: 'typechain-types', target: 'ethers-v6' },
    };
  } catch (thrown) {
    throw readable(thrown);
  }
}

export default configuration();
