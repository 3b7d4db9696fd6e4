// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.22;

/**
 * @title SigningAccount
 * @dev An account with code that is asked whose a signature is (EIP-1271). For tests alone: anybody may
 *   choose how it answers.
 */
contract SigningAccount {
  enum Mode {
    OfOwner,
    WrongValue,
    TooMuch,
    TooLittle,
    BurnsGas,
    Reverts
  }

  address public immutable owner;
  Mode public mode;

  constructor(address owner_) {
    owner = owner_;
  }

  function answerWith(Mode mode_) external {
    mode = mode_;
  }

  function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
    if (mode == Mode.BurnsGas) while (true) {}
    if (mode == Mode.Reverts) revert("no");
    if (mode == Mode.WrongValue) return 0xffffffff;
    // The selector is the valid answer.
    bytes32 valid = bytes32(this.isValidSignature.selector);
    uint256 size = mode == Mode.TooMuch ? 64000 : mode == Mode.TooLittle ? 4 : 32;
    // Its own form of a signature: a byte before that of the owner.
    if (mode == Mode.OfOwner && !isOfOwner(hash, signature)) return 0xffffffff;
    assembly {
      let at := mload(0x40)
      mstore(at, valid)
      return(at, size)
    }
  }

  function isOfOwner(bytes32 hash, bytes calldata signature) private view returns (bool) {
    bytes32 r = bytes32(signature[1:33]);
    bytes32 s = bytes32(signature[33:65]);
    return ecrecover(hash, uint8(signature[65]), r, s) == owner;
  }
}
