import { expect } from 'chai';
import { getAddress } from 'ethers';
import type { CloudEvent } from '../../service/outbox/cloud-event';
import { tokenIdAsUint256 } from '../helpers/token-id';
import { TitleEscrowFactory__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { eventually } from '../helpers/eventually';
import { startReceiver, type RunningReceiver } from '../helpers/receiver/running-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const PREFIX = 'com.service.etr.';
const NOBODY = '0x0000000000000000000000000000000000000000';

describe('event delivery for an issued document', () => {
  let local: LocalSetup;
  let receiver: RunningReceiver;
  let service: RunningService;
  let owner: string;
  let holder: string;

  before(async () => {
    local = await createLocalSetup();
    receiver = await startReceiver(local.folder, local.publicKeyFile);
    service = await startService({ ...local.settings, WEBHOOK_URL: `${receiver.url}/webhook` });
    [owner, holder] = [await local.account(1), await local.account(2)];
  });

  after(async () => {
    await service?.stop();
    await receiver?.close();
    await local?.stop();
  });

  /** Waits for that many events of a token. */
  const eventsOf = (tokenIdHex: string, count: number): Promise<CloudEvent[]> =>
    eventually(`${count} events of token ${tokenIdHex}`, () => {
      const events = receiver.events.filter(({ data }) => data.tokenIdHex === tokenIdHex);
      return events.length >= count ? events : undefined;
    });

  it('delivers each of the five events of a mint once, in the order of the chain', async () => {
    const { body } = await create(service.url, { ...minimal, owner, holder, remarks: 'for the consignee' });
    const { tokenId } = body.signedW3CDocument.credentialStatus;
    const events = await eventsOf(tokenId, 5);

    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), local.client);
    const escrowAddress = (await factory.getEscrowAddress(registry, tokenIdAsUint256(tokenId))).toLowerCase();
    const [lowOwner, lowHolder] = [owner.toLowerCase(), holder.toLowerCase()];
    const token = tokenIdAsUint256(tokenId).toString();
    const remark = String(events[1]?.data.payload.remark);
    expect(remark).to.match(/^0x[0-9a-f]{34}$/);
    expect(events.map(({ type, data }) => [type.slice(PREFIX.length), data.payload])).to.deep.equal([
      ['escrow_created', { escrowAddress }],
      ['minted', { tokenId: token, owner: lowOwner, holder: lowHolder, escrowAddress, remark }],
      ['beneficiary_transfer', { fromBeneficiary: NOBODY, toBeneficiary: lowOwner, remark: '0x' }],
      ['holder_transfer', { fromHolder: NOBODY, toHolder: lowHolder, remark: '0x' }],
      [
        'token_received',
        { escrowAddress, beneficiary: lowOwner, holder: lowHolder, isMinting: true, remark },
      ],
    ]);
  });

  it('gives an event the envelope of docs/webhooks.md, with its block', async () => {
    const { body } = await create(service.url, { ...minimal, owner, holder });
    const { tokenId } = body.signedW3CDocument.credentialStatus;
    const [first] = await eventsOf(tokenId, 5);
    const receipt = await local.client.getTransactionReceipt(body.txHash);
    const block = await local.client.getBlock(receipt?.blockNumber ?? -1);
    const address = local.registryAddress.toLowerCase();
    expect(Object.keys(first ?? {})).to.deep.equal([
      'specversion',
      'id',
      'source',
      'type',
      'datacontenttype',
      'time',
      'subject',
      'data',
    ]);
    expect(first).to.deep.include({
      specversion: '1.0',
      source: `urn:service:31337:${address}`,
      datacontenttype: 'application/json',
      time: new Date(Number(block?.timestamp) * 1000).toISOString(),
      subject: tokenIdAsUint256(tokenId).toString(),
    });
    expect(first?.id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(first?.data).to.deep.include({
      chainKey: 'hardhat',
      chainId: 31337,
      registryAddress: address,
      tokenId: tokenIdAsUint256(tokenId).toString(),
      tokenIdHex: tokenId,
      blockNumber: receipt?.blockNumber,
      transactionHash: body.txHash,
    });
    // The escrow's Initialized is the transaction's first log.
    expect(first?.data.logIndex).to.equal(1);
  });

  it('delivers the events of transferHolder, nominate and transferBeneficiary in order', async () => {
    const { body } = await create(service.url, { ...minimal, owner, holder });
    const { tokenId } = body.signedW3CDocument.credentialStatus;
    const [created] = await eventsOf(tokenId, 5);
    const escrow = String(created?.data.payload.escrowAddress);
    const [newHolder, nominee] = [await local.account(3), await local.account(4)];

    await (await (await local.escrowAs(2, escrow)).transferHolder(newHolder, '0xaa')).wait();
    await (await (await local.escrowAs(1, escrow)).nominate(nominee, '0xbb')).wait();
    await (await (await local.escrowAs(3, escrow)).transferBeneficiary(nominee, '0xcc')).wait();

    const later = (await eventsOf(tokenId, 9)).slice(5);
    const lower = (address: string): string => getAddress(address).toLowerCase();
    expect(later.map(({ type, data }) => [type.slice(PREFIX.length), data.payload])).to.deep.equal([
      ['holder_transfer', { fromHolder: lower(holder), toHolder: lower(newHolder), remark: '0xaa' }],
      ['nomination', { prevNominee: NOBODY, nominee: lower(nominee), remark: '0xbb' }],
      [
        'beneficiary_transfer',
        { fromBeneficiary: lower(owner), toBeneficiary: lower(nominee), remark: '0xcc' },
      ],
      // The contract writes this remark itself: the two ASCII bytes "0x".
      ['nomination', { prevNominee: lower(nominee), nominee: NOBODY, remark: '0x3078' }],
    ]);
  });

  it('sends no event twice, and every signature verifies', () => {
    const keys = receiver.events.map(({ data }) => `${data.transactionHash}:${data.logIndex}`);
    expect(new Set(keys).size).to.equal(keys.length);
    expect(receiver.problems).to.deep.equal([]);
  });
});
