import hre from 'hardhat';
import { useChainInProcess } from '../../../deploy/tests-in-process';

// Mocha's worker processes load Hardhat themselves: no task has told them which chain is meant.
useChainInProcess(hre);
