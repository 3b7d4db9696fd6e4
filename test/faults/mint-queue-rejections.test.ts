import { expect } from 'chai';
import { Transaction, Wallet, type TransactionRequest } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import {
  mintsOf,
  newIssuance,
  startQueue,
  untruths,
  type QueuePlace,
  type RunningQueue,
} from '../helpers/processes/running-mint-queue';
import type { Answerer, Fault } from '../helpers/chain/rpc-proxy';
import { createLocalSetup, DEPLOYER, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';

const REFUSED = (message: string): { error: { code: number; message: string } } => ({
  error: { code: -32000, message },
});

const THROUGH_IT: Fault = 'none';

describe('the queue of mints heals itself', () => {
  let local: LocalSetup;
  let place: QueuePlace;
  let other: Wallet;

  before(async () => {
    local = await createLocalSetup();
    place = { nodeUrl: local.node.url, registryAddress: local.registryAddress };
    other = new Wallet(DEPLOYER_KEY, local.client);
  });

  after(() => local?.stop());

  afterEach(async () => {
    await local.client.send('evm_setAutomine', [true]);
    await local.client.send('evm_mine', []);
  });

  type QueueOptions = Parameters<typeof startQueue>[1];

  /**
   * Runs with a queue; afterwards its journal must say what is on the chain, and no nonce may be left out.
   */
  async function withQueue(
    options: QueueOptions,
    use: (queue: RunningQueue) => Promise<void>,
  ): Promise<void> {
    const queue = await startQueue(place, options);
    try {
      await use(queue);
      await local.client.send('evm_setAutomine', [true]);
      await local.client.send('evm_mine', []);
      expect(await untruths(local.client, local.registryAddress, queue.journal)).to.deep.equal([]);
      expect(await local.client.send('eth_pendingTransactions', [])).to.deep.equal([]);
    } finally {
      await queue.stop();
    }
  }

  /** Sends with the queue's wallet from elsewhere, at a price that nobody beats. */
  async function sendElsewhere(nonce: number): Promise<void> {
    const fees = { maxFeePerGas: 900_000_000_000n, maxPriorityFeePerGas: 90_000_000_000n };
    const transaction: TransactionRequest = { type: 2, chainId: 31337, to: DEPLOYER, gasLimit: 21_000n };
    const raw = await other.signTransaction({ ...transaction, ...fees, nonce });
    await local.client.send('eth_sendRawTransaction', [raw]);
  }

  /** Does something to the first calls of a method; everything else goes through. */
  function first(method: string, times: number, answerer: Answerer): Answerer {
    let left = times;
    return (called, params, forward) =>
      called === method && left-- > 0 ? answerer(called, params, forward) : 'none';
  }

  const sentBytes = ({ proxy }: RunningQueue): string[] =>
    proxy.requests.flatMap(({ method, params: [raw] }) =>
      method === 'eth_sendRawTransaction' ? [String(raw)] : [],
    );

  it('after "nonce too low": somebody else was faster', async () => {
    const answerer = first('eth_sendRawTransaction', 1, async (_, [raw]) => {
      await sendElsewhere(Transaction.from(String(raw)).nonce);
      return THROUGH_IT;
    });
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(3, 3);
      expect(queue.log.map(({ msg }) => msg)).to.include('mint signed again: somebody else used its nonce');
    });
  });

  it('after "nonce too high": the node counted what it forgot', async () => {
    const answerer = first('eth_getTransactionCount', 2, async (_, __, forward) => {
      const answer = await forward();
      return 'result' in answer ? { result: `0x${(Number(answer.result) + 3).toString(16)}` } : answer;
    });
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(5, 5);
      expect(JSON.stringify(queue.log)).to.include('Nonce too high');
    });
  });

  it('after "already known"', async () => {
    const answerer = first('eth_sendRawTransaction', 2, async (_, __, forward) => {
      await forward();
      return REFUSED('already known');
    });
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(3, 3);
      expect(queue.journal.transactions).to.have.length(3);
    });
  });

  it('after "replacement underpriced": the nonce waits with a transaction of somebody else', async () => {
    await local.client.send('evm_setAutomine', [false]);
    const answerer = first('eth_sendRawTransaction', 1, async (_, [raw]) => {
      await sendElsewhere(Transaction.from(String(raw)).nonce);
      return THROUGH_IT;
    });
    await withQueue({ answerer }, async (queue) => {
      const mint = queue.mint();
      await eventually('it was signed again and taken', () =>
        queue.log.some(({ msg }) => msg === 'mint submitted'),
      );
      await local.client.send('evm_mine', []);
      await mint;
      expect(queue.journal.transactions).to.have.length(2);
    });
  });

  it('after somebody else took the place of what waited', async () => {
    await local.client.send('evm_setAutomine', [false]);
    await withQueue({}, async (queue) => {
      const mint = queue.mint();
      await eventually('taken', () => queue.journal.calls.submitted > 0);
      await sendElsewhere(queue.journal.transactions[0]?.nonce ?? -1);
      await local.client.send('evm_setAutomine', [true]);
      await local.client.send('evm_mine', []);
      const hash = await mint;
      expect(hash).not.to.equal(queue.journal.transactions[0]?.hash);
    });
  });

  it('after the node dropped transactions: the same bytes are sent again', async () => {
    await local.client.send('evm_setAutomine', [false]);
    await withQueue({}, async (queue) => {
      const mints = queue.mintMany(4, 4);
      await eventually(
        'all are taken',
        () => queue.log.filter(({ msg }) => msg === 'mint submitted').length === 4,
      );
      const dropped = queue.journal.transactions.slice(1, 3);
      for (const { hash } of dropped) await local.client.send('hardhat_dropTransaction', [hash]);
      await local.client.send('evm_mine', []);
      const isBack = async (): Promise<boolean> => {
        const count = await local.client.getTransactionCount(DEPLOYER, 'pending');
        return count > Math.max(...queue.journal.transactions.map(({ nonce }) => nonce));
      };
      await eventually('they are back', isBack);
      await local.client.send('evm_mine', []);
      const kept = queue.journal.transactions.map(({ hash }) => hash);
      expect((await mints).sort()).to.deep.equal(kept.sort());
    });
  });

  it('after somebody else used the nonce of a dropped transaction', async () => {
    await local.client.send('evm_setAutomine', [false]);
    await withQueue({}, async (queue) => {
      const mint = queue.mint();
      await eventually('taken', () => queue.journal.calls.submitted > 0);
      const [{ hash, nonce } = { hash: '', nonce: -1 }] = queue.journal.transactions;
      await local.client.send('hardhat_dropTransaction', [hash]);
      await sendElsewhere(nonce);
      await local.client.send('evm_setAutomine', [true]);
      await local.client.send('evm_mine', []);
      expect(await mint).not.to.equal(hash);
    });
  });

  for (const times of [1, 7])
    it(`when the node takes a transaction and the answer is lost, ${times} times`, async () => {
      const answerer = first('eth_sendRawTransaction', times, () => 'drop answer');
      await withQueue({ answerer }, async (queue) => {
        await queue.mintMany(3, 3);
        expect(queue.journal.transactions).to.have.length(3);
      });
    });

  it('when the answer is lost, and the node that is asked afterwards does not have the transaction yet', async () => {
    const loses = first('eth_sendRawTransaction', 1, () => 'drop answer');
    const hides = first('eth_getTransactionByHash', 2, () => ({ result: null }));
    const answerer: Answerer = (method, params, forward) =>
      method === 'eth_sendRawTransaction' ? loses(method, params, forward) : hides(method, params, forward);
    await withQueue({ answerer }, async (queue) => {
      const hash = await queue.mint();
      expect(queue.journal.transactions.map((kept) => kept.hash)).to.deep.equal([hash]);
      await queue.mintMany(3, 3);
    });
  });

  for (const message of ['context deadline exceeded', 'the node has a headache'])
    it(`when the node takes a transaction and answers "${message}" again and again`, async () => {
      let sent = 0;
      const says: Answerer = async (_, __, forward) => {
        if (sent++ === 0) await forward();
        return REFUSED(message);
      };
      const repeats = first('eth_sendRawTransaction', 6, says);
      const hides = first('eth_getTransactionByHash', 5, () => ({ result: null }));
      const answerer: Answerer = (method, params, forward) =>
        method === 'eth_sendRawTransaction'
          ? repeats(method, params, forward)
          : hides(method, params, forward);
      await withQueue({ answerer }, async (queue) => {
        const hash = await queue.mint();
        expect(queue.journal.transactions.map((kept) => kept.hash)).to.deep.equal([hash]);
        await queue.mintMany(3, 3);
      });
    });

  it('when the pool is full for longer than any refusal is borne, and then the price is too low', async () => {
    const answerer = first('eth_sendRawTransaction', 8, async (_, [raw], forward) => {
      if (sends++ < 7) return REFUSED('txpool is full');
      await local.client.send('hardhat_setNextBlockBaseFeePerGas', ['0x3b9aca0000']);
      await local.client.send('evm_mine', []);
      return forward([raw]);
    });
    let sends = 0;
    await withQueue({ answerer }, async (queue) => {
      await queue.mint();
      expect(JSON.stringify(queue.log)).to.include('offer more');
    });
  }).timeout(60_000);

  it('when the node is not asked for a while: nothing is lost, and nothing is signed again', async () => {
    const answerer = first('eth_sendRawTransaction', 7, () => 'drop request');
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(3, 3);
      expect(queue.journal.transactions).to.have.length(3);
    });
  });

  it('when the node cannot be reached for a while', async () => {
    await withQueue({}, async (queue) => {
      const mints = queue.mintMany(60, 20);
      await eventually('some are mined', () => queue.journal.calls.mined > 10);
      await queue.proxy.refuse();
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      await queue.proxy.accept();
      expect(new Set(await mints).size).to.equal(60);
    });
  });

  it('when answers come from nodes that are behind', async () => {
    let asked = 0;
    const seen = new Set<unknown>();
    const answerer: Answerer = async (method, [hash], forward) => {
      // A count that is a little old, every third time; a receipt that is not there yet when it is first
      // asked for.
      if (method === 'eth_getTransactionCount' && asked++ % 3 === 0) {
        const answer = await forward();
        return 'result' in answer
          ? { result: `0x${Math.max(0, Number(answer.result) - 4).toString(16)}` }
          : answer;
      }
      if (method !== 'eth_getTransactionReceipt' || seen.has(hash)) return 'none';
      seen.add(hash);
      return { result: null };
    };
    await withQueue({}, async (queue) => {
      await queue.mint();
      queue.answer(answerer);
      await queue.mintMany(30, 10);
      expect(queue.journal.transactions).to.have.length(31);
    });
  });

  it('when the price was too low for the next block', async () => {
    const answerer = first('eth_sendRawTransaction', 1, async () => {
      await local.client.send('hardhat_setNextBlockBaseFeePerGas', ['0x3b9aca0000']);
      await local.client.send('evm_mine', []);
      return THROUGH_IT;
    });
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(3, 3);
      expect(JSON.stringify(queue.log)).to.include('offer more');
    });
  });

  it('when a mint runs out of gas: it is estimated again', async () => {
    const answerer = first('eth_estimateGas', 1, () => ({ result: '0x30000' }));
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(2, 2);
      expect(queue.log.map(({ msg }) => msg)).to.include('mint signed again: it ran out of gas');
    });
  });

  it('does not take an earlier transaction, which ran out of gas, for one whose receipt is not there yet', async () => {
    const estimates = first('eth_estimateGas', 1, () => ({ result: '0x30000' }));
    await withQueue({ answerer: estimates }, async (queue) => {
      let since: number | undefined;
      // A node that is behind what counts the transactions: it does not know the second one's block.
      queue.answer(async (method, params, forward) => {
        const second = queue.journal.transactions[1];
        const mined = second && (await local.client.getTransactionReceipt(second.hash));
        if (!mined) return estimates(method, params, forward);
        since ??= performance.now();
        if (performance.now() - since > 600) return 'none';
        if (method === 'eth_getTransactionReceipt' && params[0] === second.hash) return { result: null };
        if (method !== 'eth_call') return 'none';
        return forward([params[0], `0x${(mined.blockNumber - 1).toString(16)}`]);
      });
      const hash = await queue.mint();
      expect(queue.journal.transactions).to.have.length(2);
      expect(hash).to.equal(queue.journal.transactions[1]?.hash);
      expect(since).not.to.equal(undefined);
    });
  });

  it('finds a token that was made by another transaction, and says which', async () => {
    await withQueue({}, async (queue) => {
      await queue.mint();
      const issuance = newIssuance();
      await mintDirectly(local, issuance.holder, { tokenId: BigInt(`0x${issuance.tokenId}`) });
      const [made] = await mintsOf(local.client, local.registryAddress, issuance.tokenId);
      expect(await queue.mint(issuance)).to.equal(made);
    });
  });

  it('does not fail what the registry has, though a node that is behind does not know it', async () => {
    await withQueue({}, async (queue) => {
      const issuance = newIssuance(70);
      const before = await local.client.getBlockNumber();
      await mintDirectly(local, issuance.holder, { tokenId: BigInt(`0x${issuance.tokenId}`) });
      const [made] = await mintsOf(local.client, local.registryAddress, issuance.tokenId);
      const until = performance.now() + 1_200;
      queue.answer((method, [call], forward) =>
        method === 'eth_call' && performance.now() < until
          ? forward([call, `0x${before.toString(16)}`])
          : 'none',
      );
      expect(await queue.mint(issuance)).to.equal(made);
    });
  });

  it('fails what the registry refuses, and goes on with those after it', async () => {
    const admin = TradeTrustTokenStandard__factory.connect(local.registryAddress, other);
    await withQueue({}, async (queue) => {
      await queue.mint();
      await (await admin.pause('0x')).wait();
      // Its gas is known from the one before: this one is sent, and reverts.
      const error = await queue.mint().catch((failure: unknown) => failure);
      expect(error).to.have.property('code', 'MINT_REVERTED');
      expect(error)
        .to.have.property('remedy')
        .that.matches(/paused/);
      // The gas of this one is not known.
      const unsent = await queue.mint(newIssuance(50)).catch((failure: unknown) => failure);
      expect(unsent).to.include({
        code: 'MINT_SIMULATION_FAILED',
        message: 'Failed to mint token',
        reason: 'EnforcedPause',
      });
      expect(unsent)
        .to.have.property('remedy')
        .that.matches(/paused/);
      await (await admin.unpause('0x')).wait();
      await queue.mintMany(2, 2);
      const failures = [...queue.journal.issuances.values()].flatMap(({ failure }) => failure ?? []);
      expect(failures.map(({ code }) => code)).to.deep.equal(['MINT_REVERTED', 'MINT_SIMULATION_FAILED']);
      expect(failures[0]?.message).to.match(/paused/);
      expect(failures[1]?.message).to.match(
        /^Failed to mint token \(EnforcedPause\)\. The registry is paused/,
      );
    });
  });

  it('gives the nonce of one that the node never takes to the next', async () => {
    let doomed: string | undefined;
    const answerer: Answerer = (method, [raw]) => {
      if (method !== 'eth_sendRawTransaction') return 'none';
      const { data } = Transaction.from(String(raw));
      doomed ??= data;
      return data === doomed ? REFUSED('the node dislikes it') : 'none';
    };
    await withQueue({ answerer }, async (queue) => {
      const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => queue.mint()));
      const failed = outcomes.filter(({ status }) => status === 'rejected');
      expect(failed).to.have.length(1);
      expect(failed[0]).to.have.nested.property('reason.code', 'TRANSACTION_REJECTED');
      expect(sentBytes(queue).filter((raw) => Transaction.from(raw).data === doomed)).to.have.length(5);
    });
  });
});
