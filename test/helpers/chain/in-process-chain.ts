import hre from 'hardhat';
import { useChainInProcess } from '../../../deploy/tests-in-process';

// Mocha's worker processes load Hardhat without a task that selects the chain.
useChainInProcess(hre);
