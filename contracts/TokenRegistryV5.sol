// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.22;

// The registry's v5 contracts are compiled from the published package and never changed here: these imports
// only make Hardhat produce their artifacts and typed bindings. test/unit/bytecode.test.ts compares the
// result with the package's own artifacts.
import { TitleEscrow } from "@tradetrust-tt/token-registry/contracts/TitleEscrow.sol";
import { TitleEscrowFactory } from "@tradetrust-tt/token-registry/contracts/TitleEscrowFactory.sol";
import { TradeTrustTokenStandard } from "@tradetrust-tt/token-registry/contracts/presets/TradeTrustTokenStandard.sol";
import { TDocDeployer } from "@tradetrust-tt/token-registry/contracts/utils/TDocDeployer.sol";
