// Must come first: no later output may contain a secret.
import './deploy/masked-output';
import '@nomicfoundation/hardhat-toolbox';
import type { HardhatUserConfig } from 'hardhat/config';
import { explorers } from './deploy/explorers';
import { hardhatNetworks } from './deploy/hardhat-networks';
import './deploy/sending';
import { SOLIDITY_VERSION } from './deploy/npm-solidity-compiler';
import './deploy/tasks/deploy';
import './deploy/tasks/did';
import './deploy/tasks/signing-key';
import './deploy/tasks/test';
import './deploy/tasks/verify';

const config: HardhatUserConfig = {
  solidity: {
    version: SOLIDITY_VERSION,
    // The settings that the published contracts were built with; test/unit/bytecode.test.ts checks the
    // result.
    settings: { optimizer: { enabled: false }, evmVersion: 'paris' },
  },
  ...hardhatNetworks(),
  ...explorers(),
  paths: { tests: './test', ignition: './deploy' },
  typechain: { outDir: 'typechain-types', target: 'ethers-v6' },
};

export default config;
