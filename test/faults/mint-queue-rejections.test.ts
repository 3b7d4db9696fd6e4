import { expect } from 'chai';
import { Transaction, Wallet, type TransactionRequest } from 'ethers';
import { newDeferred } from '../../service/base/waiting';
import { findNetwork, type Network } from '../../service/chain/networks';
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

describe('the mint queue when the node rejects, loses or delays', () => {
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

  /** Runs with a queue; afterwards its journal must match the chain, and the nonces must have no gap. */
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

  /** Sends a transaction of the queue's wallet from elsewhere, at the highest price. */
  async function sendElsewhere(nonce: number): Promise<void> {
    const fees = { maxFeePerGas: 900_000_000_000n, maxPriorityFeePerGas: 90_000_000_000n };
    const transaction: TransactionRequest = { type: 2, chainId: 31337, to: DEPLOYER, gasLimit: 21_000n };
    const raw = await other.signTransaction({ ...transaction, ...fees, nonce });
    await local.client.send('eth_sendRawTransaction', [raw]);
  }

  /** Applies `answerer` to the first calls of a method; all others go through. */
  function first(method: string, times: number, answerer: Answerer): Answerer {
    let left = times;
    return (called, params, forward) =>
      called === method && left-- > 0 ? answerer(called, params, forward) : 'none';
  }

  const sentBytes = ({ proxy }: RunningQueue): string[] =>
    proxy.requests.flatMap(({ method, params: [raw] }) =>
      method === 'eth_sendRawTransaction' ? [String(raw)] : [],
    );

  it('signs again after "nonce too low": another sender was faster', async () => {
    const answerer = first('eth_sendRawTransaction', 1, async (_, [raw]) => {
      await sendElsewhere(Transaction.from(String(raw)).nonce);
      return THROUGH_IT;
    });
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(3, 3);
      expect(queue.log.map(({ msg }) => msg)).to.include('mint signed again: somebody else used its nonce');
    });
  });

  it('recovers from "nonce too high": the node counted transactions that it forgot', async () => {
    const answerer = first('eth_getTransactionCount', 2, async (_, __, forward) => {
      const answer = await forward();
      return 'result' in answer ? { result: `0x${(Number(answer.result) + 3).toString(16)}` } : answer;
    });
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(5, 5);
      expect(JSON.stringify(queue.log)).to.include('Nonce too high');
    });
  });

  it('treats "already known" as accepted', async () => {
    const answerer = first('eth_sendRawTransaction', 2, async (_, __, forward) => {
      await forward();
      return REFUSED('already known');
    });
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(3, 3);
      expect(queue.journal.transactions).to.have.length(3);
    });
  });

  it('signs again after "replacement underpriced": another pending transaction has the nonce', async () => {
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

  it('signs again when another transaction replaced a pending mint', async () => {
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

  it('sends the same bytes again when the node dropped transactions', async () => {
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

  it('signs again when the nonce of a dropped transaction was used elsewhere', async () => {
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
    it(`signs nothing again when the answer to an accepted transaction is lost ${times} times`, async () => {
      const answerer = first('eth_sendRawTransaction', times, () => 'drop answer');
      await withQueue({ answerer }, async (queue) => {
        await queue.mintMany(3, 3);
        expect(queue.journal.transactions).to.have.length(3);
      });
    });

  it('signs nothing again when the answer is lost and the next node lacks the transaction', async () => {
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
    it(`signs nothing again when the node takes a transaction and keeps answering "${message}"`, async () => {
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

  it('outlasts a full pool, and then offers more when the price is too low', async () => {
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
  });

  it('signs nothing again when transactions do not reach the node for a while', async () => {
    const answerer = first('eth_sendRawTransaction', 7, () => 'drop request');
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(3, 3);
      expect(queue.journal.transactions).to.have.length(3);
    });
  });

  it('mints everything when the node cannot be reached for a while', async () => {
    await withQueue({}, async (queue) => {
      const mints = queue.mintMany(60, 20);
      await eventually('some are mined', () => queue.journal.calls.mined > 10);
      await queue.proxy.refuse();
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      await queue.proxy.accept();
      expect(new Set(await mints).size).to.equal(60);
    });
  });

  it('signs nothing again when answers come from lagging nodes', async () => {
    let asked = 0;
    const seen = new Set<unknown>();
    const answerer: Answerer = async (method, [hash], forward) => {
      // Every third count is slightly old; a receipt is missing the first time that it is asked for.
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

  it('offers more when the price was too low for the next block', async () => {
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

  it('estimates again when a mint runs out of gas', async () => {
    const answerer = first('eth_estimateGas', 1, () => ({ result: '0x30000' }));
    await withQueue({ answerer }, async (queue) => {
      await queue.mintMany(2, 2);
      expect(queue.log.map(({ msg }) => msg)).to.include('mint signed again: it ran out of gas');
    });
  });

  it('does not mistake an earlier transaction that ran out of gas for one with no receipt yet', async () => {
    const estimates = first('eth_estimateGas', 1, () => ({ result: '0x30000' }));
    await withQueue({ answerer: estimates }, async (queue) => {
      let since: number | undefined;
      // A node behind the one that counts transactions: it lacks the block of the second one.
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

  it('returns the other transaction that minted the token', async () => {
    await withQueue({}, async (queue) => {
      await queue.mint();
      const issuance = newIssuance();
      await mintDirectly(local, issuance.holder, { tokenId: BigInt(`0x${issuance.tokenId}`) });
      const [made] = await mintsOf(local.client, local.registryAddress, issuance.tokenId);
      expect(await queue.mint(issuance)).to.equal(made);
    });
  });

  it('does not fail a mint whose token exists, although a lagging node does not know it', async () => {
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

  it('makes a mint final that was found on the chain while its refusal was being handled', async () => {
    const network: Network = { ...(findNetwork('31337') as Network), local: false, confirmations: 1 };
    const asked = { receipt: newDeferred<void>(), count: newDeferred<void>(), mined: newDeferred<void>() };
    let isSent = false;
    const answerer: Answerer = async (method, [what, block], forward) => {
      if (method === 'eth_sendRawTransaction') {
        if (isSent) return THROUGH_IT;
        isSent = true;
        await forward([what]);
        await asked.receipt.promise;
        return REFUSED('intrinsic gas too low');
      }
      // The node that is asked whether it has the transaction lacks it.
      if (method === 'eth_getTransactionByHash') return { result: null };
      if (method === 'eth_getTransactionReceipt') {
        asked.receipt.resolve();
        await asked.count.promise;
      }
      if (isSent && method === 'eth_getTransactionCount' && block === 'pending') {
        asked.count.resolve();
        await asked.mined.promise;
      }
      return THROUGH_IT;
    };
    const timing = { pollMs: 50, finalCheckMs: 100 };
    await withQueue({ answerer, network, timing }, async (queue) => {
      queue.journal.onChange = (change) => {
        if (change === 'mined') asked.mined.resolve();
      };
      await queue.mint();
      await local.client.send('evm_mine', []);
      await eventually('it is final', () => queue.journal.calls.final === 1);
      expect(queue.journal.transactions).to.have.length(1);
    });
  });

  it('fails mints that the registry refuses, and continues with the next', async () => {
    const admin = TradeTrustTokenStandard__factory.connect(local.registryAddress, other);
    await withQueue({}, async (queue) => {
      await queue.mint();
      await (await admin.pause('0x')).wait();
      // The gas is known from the mint before: this one is sent, and reverts.
      const error = await queue.mint().catch((failure: unknown) => failure);
      expect(error).to.have.property('code', 'MINT_REVERTED');
      expect(error)
        .to.have.property('remedy')
        .that.matches(/paused/);
      // The gas of this one is not known: it fails in the simulation.
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

  it('reuses the nonce of a mint that the node never takes', async () => {
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
