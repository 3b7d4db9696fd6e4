import { expect } from 'chai';
import { Transaction } from 'ethers';
import { DEPLOYER, localSetupOfSuite } from '../helpers/chain/local-setup';
import { refuseTipsBelow } from '../helpers/chain/rpc-proxy';
import { createMemoryJournal } from '../helpers/database/memory-journal';
import { VirtualTime } from '../helpers/virtual-time';
import {
  failureOf,
  first,
  mineAtOnce,
  PUBLIC,
  withQueue,
  type QueueOptions,
  type RunningQueue,
} from '../helpers/processes/running-mint-queue';

const GWEI = 1_000_000_000n;
const RAISED = 300n * GWEI;
const SEND = 'eth_sendRawTransaction';
/** A public network, which is looked at every two seconds. */
const SLOW = { ...PUBLIC, blockTimeMs: 2_000 };
const MINUTE_MS = 60_000;
const WAITS = 'mint waits until the wallet is funded';

describe('the mint queue: fees and funds', () => {
  const local = localSetupOfSuite();
  let time: VirtualTime;

  beforeEach(() => (time = new VirtualTime()));

  afterEach(() => mineAtOnce(local));

  const mine = (): Promise<unknown> => local.client.send('evm_mine', []);
  const setBalance = (wei: string): Promise<unknown> =>
    local.client.send('hardhat_setBalance', [DEPLOYER, wei]);
  /** Raises the base fee of the next block, and mines it. */
  async function raiseBaseFee(fee: bigint): Promise<void> {
    await local.client.send('hardhat_setNextBlockBaseFeePerGas', [`0x${fee.toString(16)}`]);
    await mine();
  }
  const replaced = ({ log }: RunningQueue): number => log.filter((line) => 'replaced' in line).length;

  const withinTime = (options: QueueOptions, use: (queue: RunningQueue) => Promise<void>): Promise<void> =>
    withQueue(local, { time, ...options }, use);

  /** Runs with a queue on a node that mines on request only. */
  async function withoutBlocks(
    options: QueueOptions,
    use: (queue: RunningQueue) => Promise<void>,
  ): Promise<void> {
    await local.client.send('evm_setAutomine', [false]);
    await withinTime(options, use);
  }

  it('replaces transactions that are not mined in time, with fees that suffice now', () =>
    withoutBlocks({ network: SLOW }, async (queue) => {
      const mints = queue.mintMany(3, 3);
      await time.until('taken', () => queue.logged('mint submitted') === 3);
      await raiseBaseFee(RAISED);
      await time.until('all are replaced', () => queue.journal.transactions.length >= 6);
      await time.until('the node has the replacements', () => replaced(queue) >= 3);
      await mine();
      const hashes = await time.settled(mints);
      const signed = queue.journal.transactions.map(({ raw }) => Transaction.from(raw));
      const [before, after] = [signed.slice(0, 3), signed.slice(3)];
      expect(after.slice(0, 3).map(({ nonce }) => nonce)).to.deep.equal(before.map(({ nonce }) => nonce));
      expect(after.map(({ hash }) => hash)).to.include.members(hashes);
      for (const { maxFeePerGas, maxPriorityFeePerGas, nonce } of after) {
        const old = before.find((one) => one.nonce === nonce);
        expect(Number(maxFeePerGas)).to.be.at.least(Number(old?.maxFeePerGas) * 1.125);
        expect(Number(maxPriorityFeePerGas)).to.be.at.least(Number(old?.maxPriorityFeePerGas) * 1.125);
        expect(Number(maxFeePerGas)).to.be.at.least(Number((RAISED * 8n) / 10n));
      }
    }));

  it('records the first version when that one is mined after all', () =>
    withoutBlocks({ network: SLOW }, async (queue) => {
      // The replacement reaches no node, so the first version is mined.
      queue.answer((method) =>
        method === SEND && queue.journal.transactions.length > 1
          ? { error: { code: -32000, message: 'replacement transaction underpriced' } }
          : 'none',
      );
      const mint = queue.mint();
      await time.until('it is replaced', () => queue.journal.transactions.length >= 3);
      await mine();
      expect(await time.settled(mint)).to.equal(queue.journal.transactions[0]?.hash);
    }));

  it('replaces a transaction only so many times at an unchanged price', () =>
    withoutBlocks({ network: SLOW }, async (queue) => {
      const mint = queue.mint();
      await time.until('it is replaced', () => queue.journal.transactions.length === 6);
      await time.pass(10 * MINUTE_MS);
      expect(queue.journal.transactions).to.have.length(6);
      await mine();
      expect(await time.settled(mint)).to.equal(queue.journal.transactions[5]?.hash);
    }));

  it('replaces beyond that limit while the price keeps rising', () =>
    withoutBlocks({ network: SLOW }, async (queue) => {
      const mint = queue.mint();
      await time.until('taken', () => queue.logged('mint submitted') > 0);
      for (const kept of [2, 3, 4, 5, 6, 7, 8]) {
        await raiseBaseFee(100n * 3n ** BigInt(kept) * GWEI);
        await time.until('it is replaced', () => queue.journal.transactions.length === kept);
      }
      await time.until('the node has it', () => replaced(queue) === 7);
      await mine();
      expect(await time.settled(mint)).to.equal(queue.journal.transactions[7]?.hash);
    }));

  it('offers the priority fee that the node asks for, and offers it for the next mint at once', () =>
    withinTime({ answerer: refuseTipsBelow(37n * GWEI) }, async (queue) => {
      await time.settled(queue.mint());
      await time.settled(queue.mint());
      const tips = queue.journal.transactions.map(({ raw }) => Transaction.from(raw).maxPriorityFeePerGas);
      expect(tips).to.deep.equal([GWEI, 37n * GWEI, 37n * GWEI]);
    }));

  it('names the setting when the node asks for more than it is believed', () =>
    withinTime({ answerer: refuseTipsBelow(1_000n * GWEI) }, async (queue) => {
      const error = await time.settled(failureOf(queue.mint()));
      expect(error).to.have.property('code', 'TRANSACTION_REJECTED');
      expect(error).to.have.property('remedy').that.contains('LEAST_PRIORITY_FEE_GWEI');
    }));

  it('estimates gas once, and reads fees rarely, for many mints', () =>
    withinTime({}, async (queue) => {
      const began = time.now();
      await time.settled(queue.mintMany(40, 10));
      const { eth_estimateGas, eth_maxPriorityFeePerGas = 0 } = queue.proxy.counts();
      expect(eth_estimateGas).to.equal(1);
      // Fees are kept for a second.
      expect(eth_maxPriorityFeePerGas).to.be.at.most(1 + Math.ceil((time.now() - began) / 1_000));
    }));

  it('fails at once with a remedy when the wallet cannot pay, and mints again when it can', () =>
    withinTime({}, async (queue) => {
      await setBalance('0x1000');
      const error = await time.settled(failureOf(queue.mint()));
      expect(error).to.have.property('code', 'TRANSACTION_REJECTED');
      expect(error)
        .to.have.property('remedy')
        .that.matches(/Fund the wallet/);
      const [failed] = queue.journal.issuances.values();
      expect(failed?.failure?.message).to.match(/Fund the wallet/);
      await mineAtOnce(local);
      await time.settled(queue.mint());
    }));

  it('fails an unfunded mint as soon as the only node does not have it', () =>
    withinTime({ answerer: first(SEND, 1, () => 'drop request') }, async (queue) => {
      await setBalance('0x1000');
      const error = await time.settled(failureOf(queue.mint()));
      expect(error).to.have.property('code', 'TRANSACTION_REJECTED');
      await mineAtOnce(local);
      await time.settled(queue.mint());
    }));

  it('waits for funds when another node may have the mint, and sends the same bytes each time', async () => {
    const answerer = first(SEND, 1, () => 'drop request');
    await withinTime({ answerer, network: SLOW }, async (queue) => {
      await setBalance('0x1000');
      const mint = queue.mint();
      await time.until('it was sent some times', () => queue.logged(WAITS) >= 4);
      expect(queue.journal.transactions).to.have.length(1);
      await mineAtOnce(local);
      await time.settled(Promise.all([mint, queue.mint()]));
    });
  });

  it('waits for funds no longer once fees have fallen to what the wallet can pay', async () => {
    const answerer = first(SEND, 1, () => 'drop request');
    await withinTime({ answerer, network: SLOW }, async (queue) => {
      await raiseBaseFee(RAISED);
      await setBalance(`0x${(GWEI * 100_000_000n).toString(16)}`);
      const mint = queue.mint();
      await time.until('it was sent some times', () => queue.logged(WAITS) >= 2);
      await raiseBaseFee(GWEI);
      const hash = await time.settled(mint);
      const [dear, cheap, ...others] = queue.journal.transactions;
      expect(others).to.deep.equal([]);
      expect(cheap).to.include({ hash, nonce: dear?.nonce });
    });
  });

  for (const words of ['nonce too high', 'replacement transaction underpriced', 'transaction underpriced'])
    it(`waits for funds when another node took the mint and this one says "${words}"`, async () => {
      const refusals = [words, 'insufficient funds for gas * price + value'];
      const options: QueueOptions = {
        network: SLOW,
        answerer: async (method, _, forward) => {
          if (method === 'eth_getTransactionByHash') return { result: null };
          const message = method === SEND ? refusals.shift() : undefined;
          if (message === undefined) return 'none';
          if (message === words) await forward();
          return { error: { code: -32000, message } };
        },
      };
      await withoutBlocks(options, async (queue) => {
        const mint = queue.mint();
        // If the mint is signed again, the registry refuses it: the node's estimate includes pending
        // transactions.
        const waits = /^mint (waits until the wallet is funded|deferred: it cannot be made now)/;
        await time.until('it waits', () => queue.log.some(({ msg }) => waits.test(String(msg))));
        await mine();
        await time.settled(mint);
      });
    });

  it('waits for funds to finish a mint of an earlier run', async () => {
    const journal = createMemoryJournal(time);
    await withoutBlocks({ journal }, async (queue) => {
      void failureOf(queue.mint());
      await time.until('taken', () => journal.calls.submitted > 0);
    });
    await local.client.send('hardhat_dropTransaction', [journal.transactions[0]?.hash]);
    await local.client.send('evm_setAutomine', [true]);
    await setBalance('0x1000');
    const stateNow = (): unknown => [...journal.issuances.values()][0]?.state;
    await withinTime({ journal }, async (queue) => {
      await time.until('it waits', () => queue.logged(WAITS) > 0);
      expect(stateNow()).to.equal('submitted');
      await mineAtOnce(local);
      await time.until('it is mined', () => stateNow() === 'final');
    });
  });
});
