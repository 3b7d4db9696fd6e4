// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.22;

// TDocDeployer is upgradeable (UUPS) and its constructor disables `initialize` on itself: it works only
// behind this proxy.
import { ERC1967Proxy } from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
