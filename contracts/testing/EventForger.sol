// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.22;

import { ISBTUpgradeable } from "@tradetrust-tt/token-registry/contracts/interfaces/ISBTUpgradeable.sol";
import { ITitleEscrow } from "@tradetrust-tt/token-registry/contracts/interfaces/ITitleEscrow.sol";
import { ITitleEscrowFactory } from "@tradetrust-tt/token-registry/contracts/interfaces/ITitleEscrowFactory.sol";
import { ITradeTrustSBT } from "@tradetrust-tt/token-registry/contracts/interfaces/ITradeTrustSBT.sol";
import { ITradeTrustToken } from "@tradetrust-tt/token-registry/contracts/interfaces/ITradeTrustToken.sol";

/**
 * @title EventForger
 * @dev A stranger that emits every event of a registry, its factory and its escrows, naming contracts and
 *   tokens that are not its own. For tests alone. The events are those of the published interfaces, so that
 *   their signatures are right by construction.
 */
contract EventForger {
  address private constant BURN_ADDRESS = 0x000000000000000000000000000000000000dEaD;

  /// Everything at once, about one token.
  function forge(address registry, address escrow, uint256 tokenId) public {
    forgeRegistryEvents(registry, escrow, tokenId);
    emit ITitleEscrowFactory.TitleEscrowCreated(escrow, registry, tokenId);
    forgeTransfers(registry, tokenId);
    forgeRejections(registry, tokenId);
  }

  /// A log of any form, also one that no event has.
  function forgeLog(bytes32[] calldata topics, bytes memory data) external {
    bytes32 a = topics.length > 0 ? topics[0] : bytes32(0);
    bytes32 b = topics.length > 1 ? topics[1] : bytes32(0);
    bytes32 c = topics.length > 2 ? topics[2] : bytes32(0);
    bytes32 d = topics.length > 3 ? topics[3] : bytes32(0);
    uint256 count = topics.length;
    assembly {
      let start := add(data, 32)
      let length := mload(data)
      switch count
      case 0 { log0(start, length) }
      case 1 { log1(start, length, a) }
      case 2 { log2(start, length, a, b) }
      case 3 { log3(start, length, a, b, c) }
      default { log4(start, length, a, b, c, d) }
    }
  }

  // / Mints at a registry where it is a minter: genuine events and forged ones about the same tokens, in one
  // transaction.
  function mintAmongForgeries(ITradeTrustToken registry, uint256[] calldata tokenIds, address[] calldata owners) external {
    for (uint256 i = 0; i < tokenIds.length; i++) {
      forge(address(registry), address(this), tokenIds[i]);
      registry.mint(owners[i], owners[i], tokenIds[i], "");
      forge(address(registry), registry.ownerOf(tokenIds[i]), tokenIds[i]);
    }
  }

  function forgeRegistryEvents(address registry, address escrow, uint256 tokenId) private {
    emit ISBTUpgradeable.Transfer(address(0), escrow, tokenId);
    emit ISBTUpgradeable.Transfer(escrow, registry, tokenId);
    emit ISBTUpgradeable.Transfer(registry, escrow, tokenId);
    emit ISBTUpgradeable.Transfer(registry, BURN_ADDRESS, tokenId);
    emit ITradeTrustSBT.PauseWithRemark(msg.sender, "forged");
    emit ITradeTrustSBT.UnpauseWithRemark(msg.sender, "forged");
  }

  function forgeTransfers(address registry, uint256 tokenId) private {
    emit ITitleEscrow.TokenReceived(msg.sender, msg.sender, true, registry, tokenId, "forged");
    emit ITitleEscrow.TokenReceived(msg.sender, msg.sender, false, registry, tokenId, "forged");
    emit ITitleEscrow.Nomination(address(0), msg.sender, registry, tokenId, "forged");
    emit ITitleEscrow.BeneficiaryTransfer(address(0), msg.sender, registry, tokenId, "forged");
    emit ITitleEscrow.HolderTransfer(address(0), msg.sender, registry, tokenId, "forged");
    emit ITitleEscrow.ReturnToIssuer(msg.sender, registry, tokenId, "forged");
    emit ITitleEscrow.Shred(registry, tokenId, "forged");
  }

  function forgeRejections(address registry, uint256 tokenId) private {
    address me = address(this);
    emit ITitleEscrow.RejectTransferBeneficiary(me, msg.sender, registry, tokenId, "forged");
    emit ITitleEscrow.RejectTransferHolder(me, msg.sender, registry, tokenId, "forged");
    emit ITitleEscrow.RejectTransferOwners(me, msg.sender, me, msg.sender, registry, tokenId, "forged");
  }
}
