import {
  TitleEscrowFactory__factory,
  TitleEscrow__factory,
  TradeTrustTokenStandard__factory,
} from '../../typechain-types';

/** The contracts' interfaces, generated from their ABIs. */
export const registryInterface = TradeTrustTokenStandard__factory.createInterface();
export const factoryInterface = TitleEscrowFactory__factory.createInterface();
export const escrowInterface = TitleEscrow__factory.createInterface();

/**
 * First topics of the logs of the registry and its factory. Query them with the contracts' addresses:
 * `Transfer` has the same topic as ERC-20's.
 */
export const REGISTRY_AND_FACTORY_TOPICS = [
  registryInterface.getEvent('Transfer').topicHash,
  registryInterface.getEvent('PauseWithRemark').topicHash,
  registryInterface.getEvent('UnpauseWithRemark').topicHash,
  factoryInterface.getEvent('TitleEscrowCreated').topicHash,
];

/** First topics of the logs of title escrows. */
export const ESCROW_TOPICS = [
  escrowInterface.getEvent('TokenReceived').topicHash,
  escrowInterface.getEvent('Nomination').topicHash,
  escrowInterface.getEvent('BeneficiaryTransfer').topicHash,
  escrowInterface.getEvent('HolderTransfer').topicHash,
  escrowInterface.getEvent('ReturnToIssuer').topicHash,
  escrowInterface.getEvent('Shred').topicHash,
  escrowInterface.getEvent('RejectTransferBeneficiary').topicHash,
  escrowInterface.getEvent('RejectTransferHolder').topicHash,
  escrowInterface.getEvent('RejectTransferOwners').topicHash,
];
