import { expect } from 'chai';
import type { Devnet } from '../../devnet/start-devnet';
import type { Operated } from '../../devnet/operations';
import type { ChainEvent } from '../../client/events';
import { tokenIdAsUint256 } from '../helpers/token-id';
import { runningDevnet, takeEvents } from '../helpers/processes/running-devnet';

describe('events of token and registry operations', () => {
  let devnet: Devnet;

  before(async () => {
    devnet = await runningDevnet();
  });

  after(() => devnet?.stop());

  const suffix = ({ type }: ChainEvent): string => type.replace('com.service.etr.', '');
  const lower = (index: number): string => (devnet.accounts[index] ?? '').toLowerCase();

  /** The next events, which must be those of this operation. */
  async function eventsOf(operation: Promise<Operated>, count: number): Promise<ChainEvent[]> {
    const { transactionHash } = await operation;
    const events = await takeEvents(devnet, count);
    for (const { data } of events) expect(data.transactionHash).to.equal(transactionHash);
    return events;
  }

  /** A token of account 1 (beneficiary) and account 2 (holder), and the address of its title escrow. */
  async function mint(): Promise<{ tokenId: string; escrowAddress: string }> {
    const { tokenId } = await devnet.issue(undefined, { owner: 1, holder: 2 });
    const [created] = await takeEvents(devnet, 5);
    return {
      tokenId,
      escrowAddress: String((created?.data.payload as { escrowAddress?: string }).escrowAddress),
    };
  }

  it('transferOwners sends the beneficiary transfer, then the holder transfer', async () => {
    const { tokenId } = await mint();
    await eventsOf(devnet.transferHolder(tokenId, { to: 1 }), 1);
    const operands = { to: 3, holder: 4, remark: '0x01' };
    const events = await eventsOf(devnet.transferOwners(tokenId, operands), 2);
    expect(events.map(suffix)).to.deep.equal(['beneficiary_transfer', 'holder_transfer']);
    expect(events[1]?.data.payload).to.include({ toHolder: lower(4), remark: '0x01' });
  });

  it('rejectTransferHolder sends the transfer back, then the rejection', async () => {
    const { tokenId } = await mint();
    await eventsOf(devnet.transferHolder(tokenId, { to: 3 }), 1);
    const events = await eventsOf(devnet.rejectTransferHolder(tokenId, { remark: '0x02' }), 2);
    expect(events.map(suffix)).to.deep.equal(['holder_transfer', 'reject_transfer_holder']);
    expect(events[1]?.data.payload).to.deep.equal({
      fromHolder: lower(3),
      toHolder: lower(2),
      remark: '0x02',
    });
  });

  it('rejectTransferBeneficiary sends the transfer back, then the rejection', async () => {
    const { tokenId } = await mint();
    await eventsOf(devnet.nominate(tokenId, { to: 3 }), 1);
    await eventsOf(devnet.transferBeneficiary(tokenId, { to: 3 }), 2);
    const events = await eventsOf(devnet.rejectTransferBeneficiary(tokenId, { remark: '0x03' }), 2);
    expect(events.map(suffix)).to.deep.equal(['beneficiary_transfer', 'reject_transfer_beneficiary']);
    expect(events[1]?.data.payload).to.deep.equal({
      fromBeneficiary: lower(3),
      toBeneficiary: lower(1),
      remark: '0x03',
    });
  });

  it('rejectTransferOwners sends both transfers back, then the rejection', async () => {
    const { tokenId } = await mint();
    await eventsOf(devnet.transferHolder(tokenId, { to: 1 }), 1);
    await eventsOf(devnet.transferOwners(tokenId, { to: 3 }), 2);
    const events = await eventsOf(devnet.rejectTransferOwners(tokenId, { remark: '0x04' }), 3);
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
    const { tokenId, escrowAddress } = await mint();
    const token = tokenIdAsUint256(tokenId).toString();
    await eventsOf(devnet.transferHolder(tokenId, { to: 1 }), 1);
    const returned = await eventsOf(devnet.returnToIssuer(tokenId, { remark: '0x05' }), 3);
    expect(returned.map(suffix)).to.deep.equal(['nomination', 'surrendered', 'return_to_issuer']);
    expect(returned[1]?.data.payload).to.deep.equal({ tokenId: token, escrowAddress });
    expect(returned[2]?.data.payload).to.deep.equal({ caller: lower(1), remark: '0x05' });

    const restored = await eventsOf(devnet.restore(tokenId, { remark: '0x06' }), 2);
    expect(restored.map(suffix)).to.deep.equal(['restored', 'token_received']);
    expect(restored[0]?.data.payload).to.deep.equal({ tokenId: token, escrowAddress });
    expect(restored[1]?.data.payload).to.include({
      isMinting: false,
      beneficiary: lower(1),
      holder: lower(1),
    });

    await eventsOf(devnet.returnToIssuer(tokenId), 3);
    const burned = await eventsOf(devnet.burn(tokenId, { remark: '0x07' }), 4);
    expect(burned.map(suffix)).to.deep.equal(['beneficiary_transfer', 'holder_transfer', 'shred', 'burned']);
    expect(burned[2]?.data.payload).to.deep.equal({ remark: '0x07' });
    expect(burned[3]?.data.payload).to.deep.equal({ tokenId: token });
  });

  it('pause and unpause send registry events with token id and subject 0', async () => {
    const [paused] = await eventsOf(devnet.pause({ remark: '0x08' }), 1);
    const [unpaused] = await eventsOf(devnet.unpause({ remark: '0x09' }), 1);
    const address = devnet.registryAddress.toLowerCase();
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
