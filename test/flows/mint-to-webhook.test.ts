import { expect } from 'chai';
import type { Devnet } from '../../devnet/start-devnet';
import type { ChainEvent } from '../../client/events';
import { tokenIdAsUint256 } from '../helpers/token-id';
import { TitleEscrowFactory__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { runningDevnet, takeEvents } from '../helpers/processes/running-devnet';

const PREFIX = 'com.service.etr.';
const NOBODY = '0x0000000000000000000000000000000000000000';
/** Accounts of the node. */
const PARTIES = { owner: 1, holder: 2 };

describe('event delivery for an issued document', () => {
  let devnet: Devnet;
  let owner: string;
  let holder: string;

  before(async () => {
    devnet = await runningDevnet();
    [, owner = '', holder = ''] = devnet.accounts;
  });

  after(() => devnet?.stop());

  const eventsOf = (tokenId: string, count: number): Promise<ChainEvent[]> =>
    takeEvents(devnet, count, { tokenId });

  it('delivers each of the five events of a mint once, in the order of the chain', async () => {
    const { tokenId } = await devnet.issue(undefined, { ...PARTIES, remarks: 'for the consignee' });
    const events = await eventsOf(tokenId, 5);

    const registry = TradeTrustTokenStandard__factory.connect(devnet.registryAddress, devnet.client);
    const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), devnet.client);
    const escrowAddress = (await factory.getEscrowAddress(registry, tokenIdAsUint256(tokenId))).toLowerCase();
    const [lowOwner, lowHolder] = [owner.toLowerCase(), holder.toLowerCase()];
    const token = tokenIdAsUint256(tokenId).toString();
    const remark = String((events[1]?.data.payload as { remark?: string }).remark);
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
    const { tokenId, transactionHash } = await devnet.issue(undefined, PARTIES);
    const [first] = await eventsOf(tokenId, 5);
    const receipt = await devnet.client.getTransactionReceipt(transactionHash);
    const block = await devnet.client.getBlock(receipt?.blockNumber ?? -1);
    const address = devnet.registryAddress.toLowerCase();
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
      transactionHash,
    });
    // The escrow's Initialized is the transaction's first log.
    expect(first?.data.logIndex).to.equal(1);
  });
});
