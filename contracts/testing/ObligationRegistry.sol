// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.22;

import { BeaconProxy } from "@openzeppelin/contracts/proxy/beacon/BeaconProxy.sol";
import { UpgradeableBeacon } from "@openzeppelin/contracts/proxy/beacon/UpgradeableBeacon.sol";
import { Clones } from "@openzeppelin/contracts/proxy/Clones.sol";
import { Create2 } from "@openzeppelin/contracts/utils/Create2.sol";
import { TitleEscrow } from "@tradetrust-tt/token-registry/contracts/TitleEscrow.sol";
import { TradeTrustToken } from "@tradetrust-tt/token-registry/contracts/TradeTrustToken.sol";

// Registries as the next generation of the public contracts has them: documents with a status, in escrows of
// their own. They mint like version 5, and their escrows claim its interface. For tests alone.

/**
 * @title ObligationEscrow
 * @dev An escrow with a status. Its last event is not that of version 5, because it has a reason.
 */
contract ObligationEscrow is TitleEscrow {
  enum Status { Issued, Accepted, Discharged }

  event StatusAccepted(uint256 indexed tokenId, address indexed holder, bytes remark);
  event StatusDischarged(uint256 indexed tokenId, address indexed beneficiary, bytes remark);
  event Shred(address registry, uint256 tokenId, Status reason, bytes remark);

  Status public status;

  function accept(bytes calldata _remark) external whenNotPaused whenActive onlyHolder {
    status = Status.Accepted;
    emit StatusAccepted(tokenId, holder, _remark);
  }

  function discharge(bytes calldata _remark) external whenNotPaused whenActive onlyBeneficiary {
    status = Status.Discharged;
    emit StatusDischarged(tokenId, beneficiary, _remark);
  }

  function shred(bytes calldata _remark) external override whenNotPaused whenActive {
    if (msg.sender != registry) revert InvalidRegistry(msg.sender);
    _setBeneficiary(address(0), "");
    _setHolder(address(0), "");
    active = false;
    emit Shred(registry, tokenId, status, _remark);
  }
}

/// @dev For escrows that claim no interface.
contract SilentObligationEscrow is ObligationEscrow {
  function supportsInterface(bytes4) public pure override returns (bool) {
    return false;
  }
}

/**
 * @title ObligationEscrowFactory
 * @dev Makes escrows that are clones, at the addresses of version 5's.
 */
contract ObligationEscrowFactory {
  event ObligationEscrowCreated(
    address indexed titleEscrow,
    address indexed tokenRegistry,
    uint256 indexed tokenId
  );

  address public immutable implementation;

  constructor(address implementation_) {
    implementation = implementation_;
  }

  function create(uint256 tokenId) external returns (address titleEscrow) {
    titleEscrow = deploy(saltOf(msg.sender, tokenId));
    TitleEscrow(titleEscrow).initialize(msg.sender, tokenId);
    emit ObligationEscrowCreated(titleEscrow, msg.sender, tokenId);
  }

  function getEscrowAddress(address registry, uint256 tokenId) external view virtual returns (address) {
    return Clones.predictDeterministicAddress(implementation, saltOf(registry, tokenId));
  }

  function deploy(bytes32 salt) internal virtual returns (address) {
    return Clones.cloneDeterministic(implementation, salt);
  }

  function saltOf(address registry, uint256 tokenId) internal pure returns (bytes32) {
    return keccak256(abi.encodePacked(registry, tokenId));
  }
}

/**
 * @title BeaconEscrowFactory
 * @dev Makes escrows behind a beacon, at other addresses than those of clones.
 */
contract BeaconEscrowFactory is ObligationEscrowFactory {
  address public immutable beacon;

  constructor(address implementation_) ObligationEscrowFactory(implementation_) {
    beacon = address(new UpgradeableBeacon(implementation_, msg.sender));
  }

  function getEscrowAddress(address registry, uint256 tokenId) external view override returns (address) {
    bytes memory code = abi.encodePacked(type(BeaconProxy).creationCode, abi.encode(beacon, ""));
    return Create2.computeAddress(saltOf(registry, tokenId), keccak256(code));
  }

  function deploy(bytes32 salt) internal override returns (address) {
    return address(new BeaconProxy{ salt: salt }(beacon, ""));
  }
}

/**
 * @title ObligationRegistry
 * @dev Names its factory twice, as the public one does.
 */
contract ObligationRegistry is TradeTrustToken {
  constructor(address factory) TradeTrustToken("Obligations", "OBL", factory) {}

  function obligationEscrowFactory() external view returns (address) {
    return _titleEscrowFactory;
  }
}
