import { expect } from 'chai';
import { type ContractTransactionResponse } from 'ethers';
import { tokenIdAsUint256 } from '../helpers/token-id';
import type { CloudEvent } from '../../service/outbox/cloud-event';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { startReceiver, type RunningReceiver } from '../helpers/receiver/running-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

describe('events of token and registry operations', () => {
  let local: LocalSetup;
  let receiver: RunningReceiver;
  let service: RunningService;
  let registry: TradeTrustTokenStandard;
  let accounts: string[];

  before(async () => {
    local = await createLocalSetup();
    receiver = await startReceiver(local.folder, local.publicKeyFile);
    service = await startService({ ...local.settings, WEBHOOK_URL: receiver.url });
    registry = TradeTrustTokenStandard__factory.connect(
      local.registryAddress,
      await local.client.getSigner(0),
    );
    accounts = await Promise.all([0, 1, 2, 3, 4].map((index) => local.account(index)));
  });

  after(async () => {
    await service?.stop();
    await receiver?.close();
    await local?.stop();
  });

  const suffix = ({ type }: CloudEvent): string => type.replace('com.service.etr.', '');
  const lower = (index: number): string => (accounts[index] ?? '').toLowerCase();

  /** The events of one transaction, in order of arrival. */
  async function eventsOf(transaction: ContractTransactionResponse, count: number): Promise<CloudEvent[]> {
    await transaction.wait();
    const ofIt = (): CloudEvent[] =>
      receiver.events.filter(({ data }) => data.transactionHash === transaction.hash);
    await eventually(`${count} events of ${transaction.hash}`, () => ofIt().length >= count);
    return ofIt();
  }

  /** A token of account 1 (beneficiary) and account 2 (holder). */
  async function mint(): Promise<{ tokenId: bigint; escrow: string }> {
    const { body } = await create(service.url, { ...minimal, owner: accounts[1], holder: accounts[2] });
    const tokenId = tokenIdAsUint256(body.signedW3CDocument.credentialStatus.tokenId);
    return { tokenId, escrow: await registry.ownerOf(tokenId) };
  }

  it('transferOwners sends the beneficiary transfer, then the holder transfer', async () => {
    const { escrow } = await mint();
    await (await (await local.escrowAs(2, escrow)).transferHolder(accounts[1] ?? '', '0x')).wait();
    const both = await local.escrowAs(1, escrow);
    const events = await eventsOf(await both.transferOwners(accounts[3] ?? '', accounts[4] ?? '', '0x01'), 2);
    expect(events.map(suffix)).to.deep.equal(['beneficiary_transfer', 'holder_transfer']);
    expect(events[1]?.data.payload).to.include({ toHolder: lower(4), remark: '0x01' });
  });

  it('rejectTransferHolder sends the transfer back, then the rejection', async () => {
    const { escrow } = await mint();
    await (await (await local.escrowAs(2, escrow)).transferHolder(accounts[3] ?? '', '0x')).wait();
    const events = await eventsOf(await (await local.escrowAs(3, escrow)).rejectTransferHolder('0x02'), 2);
    expect(events.map(suffix)).to.deep.equal(['holder_transfer', 'reject_transfer_holder']);
    expect(events[1]?.data.payload).to.deep.equal({
      fromHolder: lower(3),
      toHolder: lower(2),
      remark: '0x02',
    });
  });

  it('rejectTransferBeneficiary sends the transfer back, then the rejection', async () => {
    const { escrow } = await mint();
    await (await (await local.escrowAs(1, escrow)).nominate(accounts[3] ?? '', '0x')).wait();
    await (await (await local.escrowAs(2, escrow)).transferBeneficiary(accounts[3] ?? '', '0x')).wait();
    const events = await eventsOf(
      await (await local.escrowAs(3, escrow)).rejectTransferBeneficiary('0x03'),
      2,
    );
    expect(events.map(suffix)).to.deep.equal(['beneficiary_transfer', 'reject_transfer_beneficiary']);
    expect(events[1]?.data.payload).to.deep.equal({
      fromBeneficiary: lower(3),
      toBeneficiary: lower(1),
      remark: '0x03',
    });
  });

  it('rejectTransferOwners sends both transfers back, then the rejection', async () => {
    const { escrow } = await mint();
    await (await (await local.escrowAs(2, escrow)).transferHolder(accounts[1] ?? '', '0x')).wait();
    const owner = await local.escrowAs(1, escrow);
    await (await owner.transferOwners(accounts[3] ?? '', accounts[3] ?? '', '0x')).wait();
    const events = await eventsOf(await (await local.escrowAs(3, escrow)).rejectTransferOwners('0x04'), 3);
    expect(events.map(suffix)).to.deep.equal([
      'beneficiary_transfer',
      'holder_transfer',
      'reject_transfer_owners',
    ]);
    expect(events[2]?.data.payload).to.deep.equal({
      fromBeneficiary: lower(3),
      toBeneficiary: lower(1),
      fromHolder: lower(3),
      toHolder: lower(1),
      remark: '0x04',
    });
  });

  it('returnToIssuer, restore and burn send their events in order', async () => {
    const { tokenId, escrow } = await mint();
    const token = tokenId.toString();
    const escrowAddress = escrow.toLowerCase();
    await (await (await local.escrowAs(2, escrow)).transferHolder(accounts[1] ?? '', '0x')).wait();
    const owner = await local.escrowAs(1, escrow);

    const returned = await eventsOf(await owner.returnToIssuer('0x05'), 3);
    expect(returned.map(suffix)).to.deep.equal(['nomination', 'surrendered', 'return_to_issuer']);
    expect(returned[1]?.data.payload).to.deep.equal({ tokenId: token, escrowAddress });
    expect(returned[2]?.data.payload).to.deep.equal({ caller: lower(1), remark: '0x05' });

    const restored = await eventsOf(await registry.restore(tokenId, '0x06'), 2);
    expect(restored.map(suffix)).to.deep.equal(['restored', 'token_received']);
    expect(restored[0]?.data.payload).to.deep.equal({ tokenId: token, escrowAddress });
    expect(restored[1]?.data.payload).to.include({
      isMinting: false,
      beneficiary: lower(1),
      holder: lower(1),
    });

    await eventsOf(await owner.returnToIssuer('0x'), 3);
    const burned = await eventsOf(await registry.burn(tokenId, '0x07'), 4);
    expect(burned.map(suffix)).to.deep.equal(['beneficiary_transfer', 'holder_transfer', 'shred', 'burned']);
    expect(burned[2]?.data.payload).to.deep.equal({ remark: '0x07' });
    expect(burned[3]?.data.payload).to.deep.equal({ tokenId: token });
  });

  it('pause and unpause send registry events with token id and subject 0', async () => {
    const [paused] = await eventsOf(await registry.pause('0x08'), 1);
    const [unpaused] = await eventsOf(await registry.unpause('0x09'), 1);
    const address = local.registryAddress.toLowerCase();
    expect([paused, unpaused].map((event) => event && suffix(event))).to.deep.equal([
      'registry_paused',
      'registry_unpaused',
    ]);
    expect([paused?.subject, unpaused?.subject]).to.deep.equal(['0', '0']);
    expect(paused?.data)
      .to.include({ tokenId: '0', registryAddress: address })
      .and.not.have.property('tokenIdHex');
    expect(paused?.data.payload).to.deep.equal({ account: lower(0), remark: '0x08' });
    expect(unpaused?.data.payload).to.deep.equal({ account: lower(0), remark: '0x09' });
  });
});
