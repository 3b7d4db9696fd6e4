import { expect } from 'chai';
import { Transaction } from 'ethers';
import { findNetwork, type Network } from '../../service/chain/networks';
import { eventually } from '../helpers/eventually';
import { startLane, untruths, type LanePlace, type RunningLane } from '../helpers/running-lane';
import { createWorld, DEPLOYER, type World } from '../helpers/world';

const GWEI = 1_000_000_000n;
const RAISED = 300n * GWEI;

describe('what the lane of mints pays', () => {
  let world: World;
  let place: LanePlace;

  before(async () => {
    world = await createWorld();
    place = { nodeUrl: world.node.url, registryAddress: world.registryAddress };
  });

  after(() => world?.stop());

  afterEach(async () => {
    await world.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
    await world.client.send('evm_setAutomine', [true]);
    await world.client.send('evm_mine', []);
  });

  const versions = ({ journal }: RunningLane): Transaction[] =>
    journal.transactions.map(({ raw }) => Transaction.from(raw));

  async function raiseBaseFee(): Promise<void> {
    await world.client.send('hardhat_setNextBlockBaseFeePerGas', [`0x${RAISED.toString(16)}`]);
    await world.client.send('evm_mine', []);
  }

  it('replaces what is not mined in time, with fees that are enough now', async () => {
    await world.client.send('evm_setAutomine', [false]);
    const lane = await startLane(place, { replaceAfterMs: 700 });
    try {
      const mints = lane.mintMany(3, 3);
      await eventually('taken', () => lane.log.filter(({ msg }) => msg === 'mint submitted').length === 3);
      await raiseBaseFee();
      await eventually('all are replaced', () => lane.journal.transactions.length >= 6);
      await eventually(
        'the node has the replacements',
        () => lane.log.filter((line) => 'replaced' in line).length >= 3,
      );
      await world.client.send('evm_mine', []);
      const hashes = await mints;
      const signed = versions(lane);
      const [before, after] = [signed.slice(0, 3), signed.slice(3)];
      expect(after.slice(0, 3).map(({ nonce }) => nonce)).to.deep.equal(before.map(({ nonce }) => nonce));
      expect(after.map(({ hash }) => hash)).to.include.members(hashes);
      for (const { maxFeePerGas, maxPriorityFeePerGas, nonce } of after) {
        const old = before.find((one) => one.nonce === nonce);
        expect(Number(maxFeePerGas)).to.be.at.least(Number(old?.maxFeePerGas) * 1.125);
        expect(Number(maxPriorityFeePerGas)).to.be.at.least(Number(old?.maxPriorityFeePerGas) * 1.125);
        expect(Number(maxFeePerGas)).to.be.at.least(Number((RAISED * 8n) / 10n));
      }
      expect(await untruths(world.client, world.registryAddress, lane.journal)).to.deep.equal([]);
    } finally {
      await lane.stop();
    }
  });

  it('notes the first version when that is mined after all', async () => {
    await world.client.send('evm_setAutomine', [false]);
    const lane = await startLane(place, { replaceAfterMs: 300 });
    try {
      // Nodes that the replacement does not reach mine the first.
      lane.answer((method) =>
        method === 'eth_sendRawTransaction' && lane.journal.transactions.length > 1
          ? { error: { code: -32000, message: 'replacement transaction underpriced' } }
          : 'none',
      );
      const mint = lane.mint();
      await eventually('it is replaced', () => lane.journal.transactions.length >= 3);
      await world.client.send('evm_mine', []);
      expect(await mint).to.equal(lane.journal.transactions[0]?.hash);
    } finally {
      await lane.stop();
    }
  });

  it('does not replace for ever', async () => {
    await world.client.send('evm_setAutomine', [false]);
    const lane = await startLane(place, { replaceAfterMs: 100, mostReplacements: 2 });
    try {
      const mint = lane.mint();
      await eventually('it is replaced', () => lane.journal.transactions.length === 3);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(lane.journal.transactions).to.have.length(3);
      await world.client.send('evm_mine', []);
      expect(await mint).to.equal(lane.journal.transactions[2]?.hash);
    } finally {
      await lane.stop();
    }
  });

  it('replaces as often as it takes when the price rises and rises', async () => {
    await world.client.send('evm_setAutomine', [false]);
    const lane = await startLane(place, { replaceAfterMs: 300, mostReplacements: 0 });
    try {
      const mint = lane.mint();
      await eventually('taken', () => lane.log.some(({ msg }) => msg === 'mint submitted'));
      for (const kept of [2, 3]) {
        const fee = 400n * BigInt(kept * kept) * GWEI;
        await world.client.send('hardhat_setNextBlockBaseFeePerGas', [`0x${fee.toString(16)}`]);
        await world.client.send('evm_mine', []);
        await eventually('it is replaced', () => lane.journal.transactions.length === kept);
      }
      await eventually('the node has it', () => lane.log.filter((line) => 'replaced' in line).length === 2);
      await world.client.send('evm_mine', []);
      expect(await mint).to.equal(lane.journal.transactions[2]?.hash);
    } finally {
      await lane.stop();
    }
  });

  it('estimates and reads fees once for many', async () => {
    const lane = await startLane(place);
    try {
      await lane.mintMany(40, 10);
      const { eth_estimateGas, eth_maxPriorityFeePerGas = 0 } = lane.proxy.counts();
      expect(eth_estimateGas).to.equal(1);
      expect(eth_maxPriorityFeePerGas).to.be.at.most(5);
    } finally {
      await lane.stop();
    }
  });

  it('fails at once when the wallet cannot pay, says what to do, and goes on when it can', async () => {
    const lane = await startLane(place);
    try {
      await world.client.send('hardhat_setBalance', [DEPLOYER, '0x1000']);
      const error = await lane.mint().catch((failure: unknown) => failure);
      expect(error).to.have.property('code', 'TRANSACTION_REJECTED');
      expect(error)
        .to.have.property('remedy')
        .that.matches(/Fund the wallet/);
      const [failed] = lane.journal.issuances.values();
      expect(failed?.failure?.message).to.match(/Fund the wallet/);
      await world.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
      await lane.mint();
      expect(await untruths(world.client, world.registryAddress, lane.journal)).to.deep.equal([]);
    } finally {
      await lane.stop();
    }
  });

  /** The first connection breaks before the node hears of the transaction, and there are no funds until `use` gives the mints that still wait. */
  async function sendUnfunded(
    options: Parameters<typeof startLane>[1],
    use: (lane: RunningLane) => Promise<Promise<string>[]>,
  ): Promise<void> {
    let sends = 0;
    const lane = await startLane(place, {
      ...options,
      answerer: (method) => (method === 'eth_sendRawTransaction' && ++sends === 1 ? 'drop request' : 'none'),
    });
    try {
      await world.client.send('hardhat_setBalance', [DEPLOYER, '0x1000']);
      const waiting = await use(lane);
      await world.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
      await Promise.all([...waiting, lane.mint()]);
      expect(await untruths(world.client, world.registryAddress, lane.journal)).to.deep.equal([]);
    } finally {
      await lane.stop();
    }
  }

  it('fails as soon as the one node there is has not got what it cannot pay for', async () => {
    await sendUnfunded({}, async (lane) => {
      const error = await lane.mint().catch((failure: unknown) => failure);
      expect(error).to.have.property('code', 'TRANSACTION_REJECTED');
      return [];
    });
  });

  it('waits for funds with what another node may have got', async () => {
    const network = { ...(findNetwork('31337') as Network), local: false };
    await sendUnfunded({ network, timing: { fundsMs: 300, pollMs: 50 } }, async (lane) => {
      const mint = lane.mint();
      await eventually('it waits', () =>
        lane.log.some(({ msg }) => msg === 'mint waits until the wallet is funded'),
      );
      return [mint];
    });
  });

  it('waits for funds with what an earlier run began', async () => {
    await world.client.send('evm_setAutomine', [false]);
    const first = await startLane(place);
    void first.mint().catch(() => undefined);
    await eventually('taken', () => first.journal.calls.submitted > 0);
    await first.stop();
    const [{ hash } = { hash: '' }] = first.journal.transactions;
    await world.client.send('hardhat_dropTransaction', [hash]);
    await world.client.send('evm_setAutomine', [true]);
    await world.client.send('hardhat_setBalance', [DEPLOYER, '0x1000']);
    const { journal } = first;
    const second = await startLane(place, { journal, timing: { fundsMs: 300 } });
    try {
      await eventually('it waits', () =>
        second.log.some(({ msg }) => msg === 'mint waits until the wallet is funded'),
      );
      expect([...journal.issuances.values()][0]?.state).to.equal('submitted');
      await world.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
      await eventually('it is mined', () => [...journal.issuances.values()][0]?.state === 'mined');
      expect(await untruths(world.client, world.registryAddress, journal)).to.deep.equal([]);
    } finally {
      await second.stop();
    }
  });
});
