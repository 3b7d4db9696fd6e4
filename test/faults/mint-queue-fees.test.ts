import { expect } from 'chai';
import { Transaction } from 'ethers';
import { findNetwork, type Network } from '../../service/chain/networks';
import { eventually } from '../helpers/eventually';
import {
  startQueue,
  untruths,
  type QueuePlace,
  type RunningQueue,
} from '../helpers/processes/running-mint-queue';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';

const GWEI = 1_000_000_000n;
const RAISED = 300n * GWEI;

describe('the mint queue: fees and funds', () => {
  let local: LocalSetup;
  let place: QueuePlace;

  before(async () => {
    local = await createLocalSetup();
    place = { nodeUrl: local.node.url, registryAddress: local.registryAddress };
  });

  after(() => local?.stop());

  afterEach(async () => {
    await local.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
    await local.client.send('evm_setAutomine', [true]);
    await local.client.send('evm_mine', []);
  });

  const versions = ({ journal }: RunningQueue): Transaction[] =>
    journal.transactions.map(({ raw }) => Transaction.from(raw));

  async function raiseBaseFee(): Promise<void> {
    await local.client.send('hardhat_setNextBlockBaseFeePerGas', [`0x${RAISED.toString(16)}`]);
    await local.client.send('evm_mine', []);
  }

  it('replaces transactions that are not mined in time, with fees that suffice now', async () => {
    await local.client.send('evm_setAutomine', [false]);
    const queue = await startQueue(place, { timing: { replaceAfterMs: 700 } });
    try {
      const mints = queue.mintMany(3, 3);
      await eventually('taken', () => queue.log.filter(({ msg }) => msg === 'mint submitted').length === 3);
      await raiseBaseFee();
      await eventually('all are replaced', () => queue.journal.transactions.length >= 6);
      await eventually(
        'the node has the replacements',
        () => queue.log.filter((line) => 'replaced' in line).length >= 3,
      );
      await local.client.send('evm_mine', []);
      const hashes = await mints;
      const signed = versions(queue);
      const [before, after] = [signed.slice(0, 3), signed.slice(3)];
      expect(after.slice(0, 3).map(({ nonce }) => nonce)).to.deep.equal(before.map(({ nonce }) => nonce));
      expect(after.map(({ hash }) => hash)).to.include.members(hashes);
      for (const { maxFeePerGas, maxPriorityFeePerGas, nonce } of after) {
        const old = before.find((one) => one.nonce === nonce);
        expect(Number(maxFeePerGas)).to.be.at.least(Number(old?.maxFeePerGas) * 1.125);
        expect(Number(maxPriorityFeePerGas)).to.be.at.least(Number(old?.maxPriorityFeePerGas) * 1.125);
        expect(Number(maxFeePerGas)).to.be.at.least(Number((RAISED * 8n) / 10n));
      }
      expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  });

  it('records the first version when that one is mined after all', async () => {
    await local.client.send('evm_setAutomine', [false]);
    const queue = await startQueue(place, { timing: { replaceAfterMs: 300 } });
    try {
      // The replacement reaches no node, so the first version is mined.
      queue.answer((method) =>
        method === 'eth_sendRawTransaction' && queue.journal.transactions.length > 1
          ? { error: { code: -32000, message: 'replacement transaction underpriced' } }
          : 'none',
      );
      const mint = queue.mint();
      await eventually('it is replaced', () => queue.journal.transactions.length >= 3);
      await local.client.send('evm_mine', []);
      expect(await mint).to.equal(queue.journal.transactions[0]?.hash);
    } finally {
      await queue.stop();
    }
  });

  it('replaces a transaction only so many times at an unchanged price', async () => {
    await local.client.send('evm_setAutomine', [false]);
    const queue = await startQueue(place, { timing: { replaceAfterMs: 100, mostReplacements: 2 } });
    try {
      const mint = queue.mint();
      await eventually('it is replaced', () => queue.journal.transactions.length === 3);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(queue.journal.transactions).to.have.length(3);
      await local.client.send('evm_mine', []);
      expect(await mint).to.equal(queue.journal.transactions[2]?.hash);
    } finally {
      await queue.stop();
    }
  });

  it('replaces beyond that limit while the price keeps rising', async () => {
    await local.client.send('evm_setAutomine', [false]);
    const queue = await startQueue(place, { timing: { replaceAfterMs: 300, mostReplacements: 0 } });
    try {
      const mint = queue.mint();
      await eventually('taken', () => queue.log.some(({ msg }) => msg === 'mint submitted'));
      for (const kept of [2, 3]) {
        const fee = 400n * BigInt(kept * kept) * GWEI;
        await local.client.send('hardhat_setNextBlockBaseFeePerGas', [`0x${fee.toString(16)}`]);
        await local.client.send('evm_mine', []);
        await eventually('it is replaced', () => queue.journal.transactions.length === kept);
      }
      await eventually('the node has it', () => queue.log.filter((line) => 'replaced' in line).length === 2);
      await local.client.send('evm_mine', []);
      expect(await mint).to.equal(queue.journal.transactions[2]?.hash);
    } finally {
      await queue.stop();
    }
  });

  it('estimates gas once, and reads fees rarely, for many mints', async () => {
    const queue = await startQueue(place);
    try {
      await queue.mintMany(40, 10);
      const { eth_estimateGas, eth_maxPriorityFeePerGas = 0 } = queue.proxy.counts();
      expect(eth_estimateGas).to.equal(1);
      expect(eth_maxPriorityFeePerGas).to.be.at.most(5);
    } finally {
      await queue.stop();
    }
  });

  it('fails at once with a remedy when the wallet cannot pay, and mints again when it can', async () => {
    const queue = await startQueue(place);
    try {
      await local.client.send('hardhat_setBalance', [DEPLOYER, '0x1000']);
      const error = await queue.mint().catch((failure: unknown) => failure);
      expect(error).to.have.property('code', 'TRANSACTION_REJECTED');
      expect(error)
        .to.have.property('remedy')
        .that.matches(/Fund the wallet/);
      const [failed] = queue.journal.issuances.values();
      expect(failed?.failure?.message).to.match(/Fund the wallet/);
      await local.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
      await queue.mint();
      expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  });

  /**
   * The first connection breaks before the node gets the transaction. The wallet has no funds until `use`
   * returns the mints that still wait.
   */
  async function sendUnfunded(
    options: Parameters<typeof startQueue>[1],
    use: (queue: RunningQueue) => Promise<Promise<string>[]>,
  ): Promise<void> {
    let sends = 0;
    const queue = await startQueue(place, {
      ...options,
      answerer: (method) => (method === 'eth_sendRawTransaction' && ++sends === 1 ? 'drop request' : 'none'),
    });
    try {
      await local.client.send('hardhat_setBalance', [DEPLOYER, '0x1000']);
      const waiting = await use(queue);
      await local.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
      await Promise.all([...waiting, queue.mint()]);
      expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  }

  it('fails an unfunded mint as soon as the only node does not have it', async () => {
    await sendUnfunded({}, async (queue) => {
      const error = await queue.mint().catch((failure: unknown) => failure);
      expect(error).to.have.property('code', 'TRANSACTION_REJECTED');
      return [];
    });
  });

  it('waits for funds when another node may have the mint, and sends the same bytes each time', async () => {
    const network = { ...(findNetwork('31337') as Network), local: false };
    await sendUnfunded({ network, timing: { deferMs: 300, pollMs: 50 } }, async (queue) => {
      const mint = queue.mint();
      await eventually('it was sent some times', () => {
        const waits = queue.log.filter(({ msg }) => msg === 'mint waits until the wallet is funded');
        return waits.length >= 4;
      });
      expect(queue.journal.transactions).to.have.length(1);
      return [mint];
    });
  });

  for (const words of ['nonce too high', 'replacement transaction underpriced', 'transaction underpriced'])
    it(`waits for funds when another node took the mint and this one says "${words}"`, async () => {
      await local.client.send('evm_setAutomine', [false]);
      const network = { ...(findNetwork('31337') as Network), local: false };
      const refusals = [words, 'insufficient funds for gas * price + value'];
      const queue = await startQueue(place, {
        network,
        timing: { deferMs: 300, pollMs: 50, patienceMs: 300 },
        answerer: async (method, _, forward) => {
          if (method === 'eth_getTransactionByHash') return { result: null };
          const message = method === 'eth_sendRawTransaction' ? refusals.shift() : undefined;
          if (message === undefined) return 'none';
          if (message === words) await forward();
          return { error: { code: -32000, message } };
        },
      });
      try {
        const mint = queue.mint();
        // If the mint is signed again, the registry refuses it: the node's estimate includes pending
        // transactions.
        const waits = /^mint (waits until the wallet is funded|deferred: it cannot be made now)/;
        await eventually('it waits', () => queue.log.some(({ msg }) => waits.test(String(msg))));
        await local.client.send('evm_mine', []);
        await mint;
        expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
      } finally {
        await queue.stop();
      }
    });

  it('waits for funds to finish a mint of an earlier run', async () => {
    await local.client.send('evm_setAutomine', [false]);
    const first = await startQueue(place);
    void first.mint().catch(() => undefined);
    await eventually('taken', () => first.journal.calls.submitted > 0);
    await first.stop();
    const [{ hash } = { hash: '' }] = first.journal.transactions;
    await local.client.send('hardhat_dropTransaction', [hash]);
    await local.client.send('evm_setAutomine', [true]);
    await local.client.send('hardhat_setBalance', [DEPLOYER, '0x1000']);
    const { journal } = first;
    const second = await startQueue(place, { journal, timing: { deferMs: 300 } });
    try {
      await eventually('it waits', () =>
        second.log.some(({ msg }) => msg === 'mint waits until the wallet is funded'),
      );
      expect([...journal.issuances.values()][0]?.state).to.equal('submitted');
      await local.client.send('hardhat_setBalance', [DEPLOYER, '0x21e19e0c9bab2400000']);
      await eventually('it is mined', () => [...journal.issuances.values()][0]?.state === 'final');
      expect(await untruths(local.client, local.registryAddress, journal)).to.deep.equal([]);
    } finally {
      await second.stop();
    }
  });
});
