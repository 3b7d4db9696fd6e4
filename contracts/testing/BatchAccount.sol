// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.22;

/**
 * @title BatchAccount
 * @dev An account with code that makes several calls in one transaction: a contract, or the code that an
 *   account delegates to by EIP-7702. For tests alone: anybody may let it call anything.
 */
contract BatchAccount {
  struct Call {
    address to;
    bytes data;
  }

  function execute(Call[] calldata calls) external {
    for (uint256 i = 0; i < calls.length; i++) {
      (bool isDone, bytes memory reason) = calls[i].to.call(calls[i].data);
      if (!isDone) {
        assembly {
          revert(add(reason, 32), mload(reason))
        }
      }
    }
  }
}
