import type { ContractTransactionResponse } from 'ethers';
import { TradeTrustTokenStandard__factory, type TitleEscrow } from '../../../typechain-types';
import type { LocalSetup } from './local-setup';

/**
 * An operation of the contracts, with its name in docs/webhooks.md and its transaction.
 */
export interface Operation {
  name: string;
  transactionHash: string;
}

/** A token that has just been minted for the node's account 1 (beneficiary) and account 2 (holder). */
export interface FreshToken {
  tokenId: bigint;
  transactionHash: string;
}

type Send = (escrow: TitleEscrow) => Promise<ContractTransactionResponse>;

/**
 * Takes a fresh token through every operation, each sent by an account that may do it, until it is burned;
 * then pauses and unpauses the registry. Afterwards every type of event has occurred at least once.
 */
export async function liveThrough(local: LocalSetup, token: FreshToken): Promise<Operation[]> {
  const registry = TradeTrustTokenStandard__factory.connect(
    local.registryAddress,
    await local.client.getSigner(0),
  );
  const escrow = await registry.ownerOf(token.tokenId);
  const [first, , third] = await Promise.all([1, 2, 3].map((index) => local.account(index)));
  const [one = '', three = ''] = [first, third];
  const operations: Operation[] = [{ name: 'mint', transactionHash: token.transactionHash }];

  const note = async (name: string, sent: Promise<ContractTransactionResponse>): Promise<void> => {
    const transaction = await sent;
    await transaction.wait();
    operations.push({ name, transactionHash: transaction.hash });
  };
  const as = async (account: number, name: string, send: Send): Promise<void> =>
    note(name, local.escrowAs(account, escrow).then(send));

  await as(1, 'nominate', (it) => it.nominate(three, '0x01'));
  await as(2, 'transferBeneficiary, after a nomination', (it) => it.transferBeneficiary(three, '0x02'));
  await as(3, 'rejectTransferBeneficiary', (it) => it.rejectTransferBeneficiary('0x03'));
  await as(2, 'transferHolder', (it) => it.transferHolder(three, '0x04'));
  await as(3, 'rejectTransferHolder', (it) => it.rejectTransferHolder('0x05'));
  await as(2, 'transferHolder', (it) => it.transferHolder(one, '0x'));
  await as(1, 'transferBeneficiary', (it) => it.transferBeneficiary(three, '0x06'));
  await as(3, 'rejectTransferBeneficiary', (it) => it.rejectTransferBeneficiary('0x'));
  await as(1, 'transferOwners', (it) => it.transferOwners(three, three, '0x07'));
  await as(3, 'rejectTransferOwners', (it) => it.rejectTransferOwners('0x08'));
  await as(1, 'nominate', (it) => it.nominate(three, '0x'));
  await as(1, 'transferOwners, after a nomination', (it) => it.transferOwners(three, three, '0x09'));
  await as(3, 'returnToIssuer', (it) => it.returnToIssuer('0x0a'));
  await note('restore', registry.restore(token.tokenId, '0x0b'));
  await as(3, 'returnToIssuer', (it) => it.returnToIssuer('0x'));
  await note('burn', registry.burn(token.tokenId, '0x0c'));
  await note('pause', registry.pause('0x0d'));
  await note('unpause', registry.unpause('0x0e'));
  return operations;
}
