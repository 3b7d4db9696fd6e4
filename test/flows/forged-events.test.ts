import { join } from 'node:path';
import { expect } from 'chai';
import { AbiCoder, hexlify, MaxUint256, randomBytes, toBeHex, type EventFragment } from 'ethers';
import {
  EventForger__factory,
  TitleEscrowFactory__factory,
  TitleEscrow__factory,
  TradeTrustTokenStandard__factory,
  type EventForger,
  type TradeTrustTokenStandard,
} from '../../typechain-types';
import { expectedEvents, type ExpectedEvent } from '../helpers/chain/expected-events';
import { escrowOf, mintDirectly, newTokenId, transferHolder } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** Enough for each log: to estimate it takes as long as to mine it. */
const GAS = { gasLimit: 3_000_000 };
const MINT = ['escrow_created', 'minted', 'beneficiary_transfer', 'holder_transfer', 'token_received'];

describe('forged events', () => {
  let local: LocalSetup;
  let registry: TradeTrustTokenStandard;
  let forger: EventForger;
  let receiver: RecordingReceiver;
  let service: RunningService;
  let owner: string;

  before(async () => {
    local = await createLocalSetup();
    owner = await local.account(1);
    const deployer = await local.client.getSigner(0);
    registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, deployer);
    forger = await new EventForger__factory(await local.client.getSigner(5)).deploy();
    receiver = await startRecordingReceiver(local.publicKeyFile);
    service = await startService({ ...local.settings, WEBHOOK_URL: receiver.url });
  });

  it('are not delivered, whether or not their token exists', async () => {
    const { tokenId } = await mintDirectly(local, owner);
    const delivered = await deliveredBecauseOf(async () => {
      await forge(tokenId);
      await forge(newTokenId());
    });
    expect(delivered).to.deep.equal([]);
  });

  it('do not prevent the delivery of a token that is minted after them', async () => {
    const tokenId = newTokenId();
    const delivered = await deliveredBecauseOf(async () => {
      await forge(tokenId);
      await mintDirectly(local, owner, { tokenId });
    });
    expect(delivered.map(suffix)).to.deep.equal(MINT);
    expect(delivered[1]?.data.payload).to.include({ owner: owner.toLowerCase(), remark: '0x' });
  });

  it('are separated from the genuine events of two mints in the same transaction', async () => {
    await registry.grantRole(await registry.MINTER_ROLE(), forger);
    const tokenIds = [newTokenId(), newTokenId()];
    const owners = [await local.account(2), await local.account(3)];
    const delivered = await deliveredBecauseOf(async () => {
      await forger.mintAmongForgeries(registry, tokenIds, owners);
    });
    for (const [index, tokenId] of tokenIds.entries()) {
      const events = delivered.filter(({ subject }) => subject === String(tokenId));
      const named = owners[index]?.toLowerCase();
      expect(events.map(suffix)).to.deep.equal(MINT);
      expect(events[1]?.data.payload).to.include({ owner: named, holder: named, remark: '0x' });
    }
    expect(delivered).to.have.length(2 * MINT.length);
  });

  for (const [what, forgeThem] of [
    ['they cannot be decoded', forgeMalformedLogs],
    ['their arguments cannot be read', forgeUnreadableArguments],
  ] as const)
    it(`do not stop the feed when ${what}`, async () => {
      expect(await deliveredBecauseOf(forgeThem)).to.deep.equal([]);
      expect(service.log.filter(({ level }) => level === 'error' || level === 'fatal')).to.deep.equal([]);
    });

  it('are not delivered when another registry of the factory emits them for the same token id', async () => {
    const registryAddress = await local.makeRegistry();
    const second = TradeTrustTokenStandard__factory.connect(registryAddress, registry.runner);
    expect(await second.titleEscrowFactory()).to.equal(await registry.titleEscrowFactory());
    expect(registryAddress).not.to.equal(local.registryAddress);

    const { tokenId } = await mintDirectly(local, owner);
    const delivered = await deliveredBecauseOf(async () => {
      for (const id of [tokenId, newTokenId()]) {
        const token = await mintDirectly(local, owner, { tokenId: id, registryAddress });
        await transferHolder(local, token, { from: owner, to: await local.account(2) });
      }
      await second.pause('0x');
      await second.unpause('0x');
    });
    expect(delivered).to.deep.equal([]);
  });

  it('are not delivered when a new service reads all blocks at once', async () => {
    const expected = await expectedEvents(local.client, local.registryAddress, 0);
    const later = await startRecordingReceiver(local.publicKeyFile);
    const DATA_DIR = join(local.folder, 'later');
    await startService({ ...local.settings, DATA_DIR, WEBHOOK_URL: later.url });
    await eventually('all events', () => later.deliveries.length >= expected.length);
    const ids = (from: RecordingReceiver): string[] => from.deliveries.map(({ event }) => event.id).sort();
    expect(later.deliveries).to.have.length(expected.length);
    expect(ids(later)).to.deep.equal(ids(receiver));
  });

  /**
   * Runs `action` and returns the events delivered because of it. A token minted afterwards marks their end.
   */
  async function deliveredBecauseOf(action: () => Promise<unknown>): Promise<ExpectedEvent[]> {
    const before = await local.client.getBlockNumber();
    await action();
    const marker = String((await mintDirectly(local, owner)).tokenId);
    const since = (): ExpectedEvent[] =>
      receiver.deliveries.flatMap(({ event }) => (event.data.blockNumber > before ? [event] : []));
    const genuine = await expectedEvents(local.client, local.registryAddress, before + 1);
    await eventually('the marker and what is genuine', () => since().length >= genuine.length);
    return since().filter(({ subject }) => subject !== marker);
  }

  async function forge(tokenId: bigint): Promise<void> {
    await forger.forge(registry, await escrowOf(local, tokenId), tokenId);
  }

  /**
   * Emits logs with the right signatures and everything else wrong: topics too few, too many or too large,
   * data too short or pointing nowhere.
   */
  async function forgeMalformedLogs(): Promise<void> {
    const pointingNowhere = hexlify(new Uint8Array(6 * 32).fill(0xff));
    const longRemark = AbiCoder.defaultAbiCoder().encode(
      ['address', 'uint256', 'bytes'],
      [local.registryAddress, 1, new Uint8Array(50_000)],
    );
    for (const { topicHash } of allEvents()) {
      const topics = [topicHash, ...[1, 2, 3].map(() => hexlify(randomBytes(32)))];
      await forger.forgeLog(topics.slice(0, 1), '0x', GAS);
      await forger.forgeLog(topics.slice(0, 2), hexlify(randomBytes(31)), GAS);
      await forger.forgeLog(topics.slice(0, 3), pointingNowhere, GAS);
      await forger.forgeLog(topics, longRemark, GAS);
    }
  }

  /**
   * Emits logs of the right form with words of 0xff…ff, which are no addresses: ethers decodes such a log,
   * and throws when the argument is read.
   */
  async function forgeUnreadableArguments(): Promise<void> {
    for (const { inputs, topicHash } of allEvents()) {
      const indexed = inputs.filter((input) => input.indexed).map(() => toBeHex(MaxUint256));
      const inData = inputs.filter((input) => !input.indexed);
      const types = inData.map(({ type }) => (type === 'bytes' ? type : 'uint256'));
      const values = inData.map(({ type }) => (type === 'bytes' ? '0x' : MaxUint256));
      const data = AbiCoder.defaultAbiCoder().encode(types, values);
      await forger.forgeLog([topicHash, ...indexed], data, GAS);
    }
  }
});

/** Every event of a registry, its factory and its escrows. */
function allEvents(): EventFragment[] {
  const contracts = [TitleEscrow__factory, TitleEscrowFactory__factory, TradeTrustTokenStandard__factory];
  return contracts.flatMap((contract) =>
    contract.createInterface().fragments.filter((fragment) => fragment.type === 'event'),
  ) as EventFragment[];
}

function suffix({ type }: ExpectedEvent): string {
  return type.replace('com.service.etr.', '');
}
