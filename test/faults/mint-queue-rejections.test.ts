import { expect } from 'chai';
import { Transaction, Wallet } from 'ethers';
import { newDeferred } from '../../service/base/time';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { mintDirectly } from '../helpers/chain/direct-mint';
import { DEPLOYER, DEPLOYER_KEY, localSetupOfSuite } from '../helpers/chain/local-setup';
import { THROUGH, type Answerer, type RpcAnswer } from '../helpers/chain/rpc-proxy';
import { VirtualTime } from '../helpers/virtual-time';
import {
  failureOf,
  first,
  mineAtOnce,
  mintsOf,
  newIssuance,
  PUBLIC,
  withQueue,
  type QueueOptions,
  type RunningQueue,
} from '../helpers/processes/running-mint-queue';

const SEND = 'eth_sendRawTransaction';
const MINUTE_MS = 60_000;
/** A public network whose blocks take longer than a node may be behind. */
const SLOW = { ...PUBLIC, blockTimeMs: MINUTE_MS };
const refused = (message: string): RpcAnswer => ({ error: { code: -32000, message } });

/** The answer to a count of transactions, changed by this number. */
function counted(answer: RpcAnswer, change: number): RpcAnswer {
  return 'result' in answer
    ? { result: `0x${Math.max(0, Number(answer.result) + change).toString(16)}` }
    : answer;
}

describe('the mint queue when the node rejects, loses or delays', () => {
  const local = localSetupOfSuite();
  let time: VirtualTime;

  beforeEach(() => (time = new VirtualTime()));

  afterEach(() => mineAtOnce(local));

  /** Runs with a queue; afterwards its journal must match the chain, and the nonces must have no gap. */
  const sending = (options: QueueOptions, use: (queue: RunningQueue) => Promise<unknown>): Promise<void> =>
    withQueue(local, { ...options, time }, async (queue) => {
      await use(queue);
      await mineAtOnce(local);
      expect(await local.client.send('eth_pendingTransactions', [])).to.deep.equal([]);
    });

  const raiseBaseFee = async (): Promise<void> => {
    await local.client.send('hardhat_setNextBlockBaseFeePerGas', ['0x3b9aca0000']);
    await local.client.send('evm_mine', []);
  };

  /** Answers to the first calls of a method, after which three mints need no further transaction. */
  const unsigned: [what: string, method: string, times: number, answerer: Answerer][] = [
    [
      'the node says "already known"',
      SEND,
      2,
      async (_, __, forward) => {
        await forward();
        return refused('already known');
      },
    ],
    ['transactions do not reach the node for a while', SEND, 12, () => 'drop request'],
    ['answers to accepted transactions are lost', SEND, 7, () => 'drop answer'],
    ['the gas cannot be estimated for a while', 'eth_estimateGas', 12, () => 'drop request'],
    ['receipts cannot be read for a while', 'eth_getTransactionReceipt', 12, () => 'drop request'],
  ];
  for (const [what, method, times, answerer] of unsigned)
    it(`mints, and signs nothing again, when ${what}`, () =>
      sending({ answerer: first(method, times, answerer) }, async (queue) => {
        await time.settled(queue.mintMany(3, 3));
        expect(queue.journal.transactions).to.have.length(3);
      }));

  it('recovers from "nonce too high": the node counted transactions that it forgot', async () => {
    const answerer = first('eth_getTransactionCount', 2, async (_, __, forward) =>
      counted(await forward(), 3),
    );
    await sending({ answerer }, async (queue) => {
      await time.settled(queue.mintMany(5, 5));
      expect(JSON.stringify(queue.log)).to.include('Nonce too high');
    });
  });

  it('sends the same bytes again when the node dropped transactions', async () => {
    await local.client.send('evm_setAutomine', [false]);
    await sending({}, async (queue) => {
      const mints = queue.mintMany(4, 4);
      await time.until('taken', () => queue.logged('mint submitted') === 4);
      for (const { hash } of queue.journal.transactions.slice(1, 3))
        await local.client.send('hardhat_dropTransaction', [hash]);
      await local.client.send('evm_mine', []);
      await time.until('they are back', async () => {
        const count = await local.client.getTransactionCount(DEPLOYER, 'pending');
        return count > Math.max(...queue.journal.transactions.map(({ nonce }) => nonce));
      });
      await local.client.send('evm_mine', []);
      const kept = queue.journal.transactions.map(({ hash }) => hash);
      expect((await time.settled(mints)).sort()).to.deep.equal(kept.sort());
    });
  });

  it('sends a transaction again that reached no node, long before it could have been lost', async () => {
    const options = { network: SLOW, answerer: first(SEND, 1, () => 'drop request') };
    await sending(options, async (queue) => {
      const began = time.elapsed();
      await time.settled(queue.mint());
      expect(time.elapsed() - began).to.be.below(MINUTE_MS);
    });
  });

  it('signs nothing again while another transaction waits with its nonce', async () => {
    const answerer = first(SEND, 12, () => refused('could not replace existing tx'));
    await sending({ answerer }, async (queue) => {
      await time.settled(queue.mint());
      expect(queue.journal.transactions).to.have.length(1);
    });
  });

  it('sends those before again at once when a node that lost them refuses the next one', async () => {
    await local.client.send('evm_setAutomine', [false]);
    await sending({ network: SLOW }, async (queue) => {
      const mints = [queue.mint()];
      await time.until('taken', () => queue.logged('mint submitted') === 1);
      const began = time.elapsed();
      const [lost] = queue.journal.transactions;
      await local.client.send('hardhat_dropTransaction', [lost?.hash]);
      queue.answer(first(SEND, 1, () => refused('nonce too high')));
      mints.push(queue.mint());
      await time.until('taken', () => queue.logged('mint submitted') === 3);
      expect(time.elapsed() - began).to.be.below(MINUTE_MS);
      await local.client.send('evm_mine', []);
      await time.settled(Promise.all(mints));
    });
  });

  const keepsAnswering = (message: string): Answerer => {
    let sent = 0;
    return first(SEND, 6, async (_, __, forward) => {
      if (sent++ === 0) await forward();
      return refused(message);
    });
  };
  const deaf: [what: string, unknowns: number, answerer: Answerer][] = [
    ['loses the answer', 2, first(SEND, 1, () => 'drop answer')],
    ['keeps answering "context deadline exceeded"', 5, keepsAnswering('context deadline exceeded')],
    ['keeps answering "the node has a headache"', 5, keepsAnswering('the node has a headache')],
  ];
  for (const [what, unknowns, says] of deaf)
    it(`signs nothing again when the node takes a transaction, ${what} and does not know it`, async () => {
      const hides = first('eth_getTransactionByHash', unknowns, () => ({ result: null }));
      const answerer: Answerer = (method, ...call) => (method === SEND ? says : hides)(method, ...call);
      await sending({ answerer }, async (queue) => {
        const hash = await time.settled(queue.mint());
        expect(queue.journal.transactions.map((kept) => kept.hash)).to.deep.equal([hash]);
        await time.settled(queue.mintMany(3, 3));
      });
    });

  it('outlasts a full pool and a silent node, and then offers more when the price is too low', async () => {
    let sends = 0;
    const full = first(SEND, 6, async (_, [raw], forward) => {
      if (sends++ < 5) return refused('txpool is full');
      await raiseBaseFee();
      return forward([raw]);
    });
    // The count of transactions decides about a refusal. It cannot be read at first.
    const uncounted = first('eth_getTransactionCount', 6, () => 'drop request');
    const answerer: Answerer = (method, ...call) =>
      (sends > 0 && method !== SEND ? uncounted : full)(method, ...call);
    await sending({ answerer }, async (queue) => {
      await time.settled(queue.mint());
      expect(JSON.stringify(queue.log)).to.include('mint rejected: the node cannot be asked');
      expect(JSON.stringify(queue.log)).to.include('offer more');
    });
  });

  it('signs nothing again when answers come from lagging nodes', async () => {
    let asked = 0;
    const seen = new Set<unknown>();
    const answerer: Answerer = async (method, [hash], forward) => {
      // Every third count is slightly old; a receipt is missing the first time that it is asked for.
      if (method === 'eth_getTransactionCount' && asked++ % 3 === 0) return counted(await forward(), -4);
      if (method !== 'eth_getTransactionReceipt' || seen.has(hash)) return 'none';
      seen.add(hash);
      return { result: null };
    };
    await sending({}, async (queue) => {
      await time.settled(queue.mint());
      queue.answer(answerer);
      await time.settled(queue.mintMany(30, 10));
      expect(queue.journal.transactions).to.have.length(31);
    });
  });

  it('estimates again when a mint runs out of gas, and waits for the receipt of the second', async () => {
    const estimates = first('eth_estimateGas', 1, () => ({ result: '0x30000' }));
    await sending({ answerer: estimates }, async (queue) => {
      let since: number | undefined;
      // A node behind the one that counts transactions: it lacks the block of the second one.
      queue.answer(async (method, params, forward) => {
        const second = queue.journal.transactions[1];
        const mined = second && (await local.client.getTransactionReceipt(second.hash));
        if (!mined) return estimates(method, params, forward);
        since ??= time.elapsed();
        if (time.elapsed() - since > 600) return 'none';
        if (method === 'eth_getTransactionReceipt' && params[0] === second.hash) return { result: null };
        if (method !== 'eth_call') return 'none';
        return forward([params[0], `0x${(mined.blockNumber - 1).toString(16)}`]);
      });
      const hash = await time.settled(queue.mint());
      expect(queue.journal.transactions).to.have.length(2);
      expect(hash).to.equal(queue.journal.transactions[1]?.hash);
      expect(since).not.to.equal(undefined);
      expect(queue.logged('mint signed again: it ran out of gas')).to.equal(1);
    });
  });

  it('gives up a mint that runs out of gas although the node estimated it anew twice', async () => {
    const answerer: Answerer = (method) => (method === 'eth_estimateGas' ? { result: '0x30000' } : 'none');
    await sending({ answerer }, async (queue) => {
      const failure = await time.settled(failureOf(queue.mint()));
      expect(failure).to.include({ code: 'MINT_REVERTED' });
      expect(queue.journal.transactions).to.have.length(3);
    });
  });

  it('signs again what ran out of gas and was charged for a part of its limit only', async () => {
    const estimates = first('eth_estimateGas', 1, () => ({ result: '0x30000' }));
    const receipts: Answerer = async (method, params, forward) => {
      if (method !== 'eth_getTransactionReceipt') return estimates(method, params, forward);
      const answer = (await forward()) as { result: { status: string } | null };
      return answer.result?.status === '0x0' ? { result: { ...answer.result, gasUsed: '0x20000' } } : answer;
    };
    await sending({ answerer: receipts }, async (queue) => {
      await time.settled(queue.mint());
      expect(queue.logged('mint signed again: it ran out of gas')).to.equal(1);
    });
  });

  it('mints those that wait while a fork raises the gas, with the new estimate', async () => {
    await local.client.send('evm_setAutomine', [false]);
    // Before the fork, a mint needs less than this chain demands.
    await sending(
      { answerer: (method) => (method === 'eth_estimateGas' ? { result: '0x30000' } : 'none') },
      async (queue) => {
        const mints = queue.mintMany(3, 3);
        await time.until('they wait', () => queue.logged('mint submitted') === 3);
        queue.answer(THROUGH);
        await mineAtOnce(local);
        await time.settled(mints);
        const limits = queue.journal.transactions.map(({ raw }) => Transaction.from(raw).gasLimit);
        expect(limits.slice(0, 3)).to.satisfy((old: bigint[]) => old.every((limit) => limit < 250_000n));
        expect(limits.slice(3)).to.satisfy((new_: bigint[]) => new_.every((limit) => limit > 300_000n));
        expect(limits).to.have.length(6);
      },
    );
  });

  for (const [isBehind, node] of [
    [false, 'the node'],
    [true, 'a node that is behind'],
  ] as const)
    it(`returns the other transaction that made the token, through ${node}`, () =>
      sending({}, async (queue) => {
        await time.settled(queue.mint());
        // The gas of a mint with a remark is not known: it is estimated, which reverts.
        const issuance = newIssuance(isBehind ? { remark: `0x${'01'.repeat(70)}` } : {});
        const before = await local.client.getBlockNumber();
        await mintDirectly(local, issuance.holder, { tokenId: BigInt(`0x${issuance.tokenId}`) });
        const [made] = await mintsOf(local, issuance.tokenId);
        const until = time.elapsed() + 1_200;
        queue.answer((method, [call], forward) =>
          isBehind && method === 'eth_call' && time.elapsed() < until
            ? forward([call, `0x${before.toString(16)}`])
            : 'none',
        );
        expect(await time.settled(queue.mint(issuance))).to.equal(made);
      }));

  it('makes a mint final that was found on the chain while its refusal was being handled', async () => {
    const network = { ...PUBLIC, confirmations: 1 };
    const asked = { receipt: newDeferred<void>(), count: newDeferred<void>(), mined: newDeferred<void>() };
    let isSent = false;
    const answerer: Answerer = async (method, [what, block], forward) => {
      if (method === SEND) {
        if (isSent) return 'none';
        isSent = true;
        await forward([what]);
        await time.aside(asked.receipt.promise);
        return refused('intrinsic gas too low');
      }
      // The node that is asked whether it has the transaction lacks it.
      if (method === 'eth_getTransactionByHash') return { result: null };
      if (method === 'eth_getTransactionReceipt') {
        asked.receipt.resolve();
        await time.aside(asked.count.promise);
      }
      if (isSent && method === 'eth_getTransactionCount' && block === 'pending') {
        asked.count.resolve();
        await time.aside(asked.mined.promise);
      }
      return 'none';
    };
    await sending({ network }, async (queue) => {
      // While one is mined and not final, the queue looks at the chain every second.
      await time.settled(queue.mint());
      queue.answer(answerer);
      queue.journal.onChange = (change) => {
        if (change === 'mined') asked.mined.resolve();
      };
      await time.settled(queue.mint());
      await local.client.send('evm_mine', []);
      const states = () => [...queue.journal.issuances.values()].map(({ state }) => state);
      await time.until('they are final', () => states().every((state) => state === 'final'));
      expect(queue.journal.transactions).to.have.length(2);
    });
  });

  it('fails mints that the registry refuses, and continues with the next', async () => {
    const wallet = new Wallet(DEPLOYER_KEY, local.client);
    const admin = TradeTrustTokenStandard__factory.connect(local.registryAddress, wallet);
    await sending({}, async (queue) => {
      await time.settled(queue.mint());
      await (await admin.pause('0x')).wait();
      // The gas is known from the mint before: this one is sent, and reverts.
      const reverted = await time.settled(failureOf(queue.mint()));
      const { length } = queue.journal.transactions;
      // The gas of this one is not known: it fails in the simulation.
      const unsent = await time.settled(
        failureOf(queue.mint(newIssuance({ remark: `0x${'02'.repeat(50)}` }))),
      );
      expect(queue.journal.transactions).to.have.length(length);
      expect(reverted).to.have.property('code', 'MINT_REVERTED');
      expect(unsent).to.include({
        code: 'MINT_SIMULATION_FAILED',
        message: 'Failed to mint token',
        reason: 'EnforcedPause',
      });
      for (const error of [reverted, unsent])
        expect(error)
          .to.have.property('remedy')
          .that.matches(/paused/);
      await (await admin.unpause('0x')).wait();
      await time.settled(queue.mintMany(2, 2));
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
      if (method !== SEND) return 'none';
      const { data } = Transaction.from(String(raw));
      doomed ??= data;
      return data === doomed ? refused('the node dislikes it') : 'none';
    };
    await sending({ answerer }, async (queue) => {
      const outcomes = await time.settled(Promise.allSettled(Array.from({ length: 8 }, () => queue.mint())));
      const failed = outcomes.filter(({ status }) => status === 'rejected');
      expect(failed).to.have.length(1);
      expect(failed[0]).to.have.nested.property('reason.code', 'TRANSACTION_REJECTED');
      const sent = queue.proxy.requests.filter(
        ({ method, params: [raw] }) => method === SEND && Transaction.from(String(raw)).data === doomed,
      );
      expect(sent).to.have.length(5);
    });
  });
});
