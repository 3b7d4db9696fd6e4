import { expect } from 'chai';
import { toQuantity, Wallet, ZeroHash } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime } from '../../service/base/time';
import type { IssuanceState } from '../../service/journal/issuance';
import { openWallet } from '../../service/keys/wallet';
import { createMemoryJournal } from '../helpers/database/memory-journal';
import {
  failureOf,
  mintsOf,
  newIssuance,
  PUBLIC,
  withQueue,
  type QueueOptions,
  type RunningQueue,
} from '../helpers/processes/running-mint-queue';
import { VirtualTime } from '../helpers/virtual-time';
import { THROUGH, type Answerer, type RpcAnswer } from '../helpers/chain/rpc-proxy';
import { sendTransaction } from '../helpers/chain/transactions';
import { DEPLOYER, DEPLOYER_KEY, localSetupOfSuite } from '../helpers/chain/local-setup';

const CONFIRMATIONS = 3;
/** Longer than the queue's patience, which is 15 s. */
const LONG_MS = 30_000;
const SEND = 'eth_sendRawTransaction';
const INTERNAL_ERROR: RpcAnswer = { error: { code: -32603, message: 'internal error' } };
const DEFERRED = 'mint deferred: it cannot be made now, and may have been made';
const REORGANISED = 'a reorganisation took the blocks of final mints';
const REGISTRY = TradeTrustTokenStandard__factory.createInterface();
const PAUSE = REGISTRY.encodeFunctionData('pause', ['0x']);
const UNPAUSE = REGISTRY.encodeFunctionData('unpause', ['0x']);
/** The key of the node's account 2. */
const SECOND_KEY = '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a';
/** Options of a queue whose wallet is another one. */
const NEXT: QueueOptions = { wallet: openWallet(systemTime, { privateKey: SECOND_KEY }) };
const GWEI = 1_000_000_000n;

/** Estimates without the waiting transactions, as geth does. Hardhat would include them. */
const likeGeth: Answerer = (method, params, forward) =>
  method === 'eth_estimateGas' ? forward([params[0], 'latest']) : 'none';

describe('a mint on a public network', () => {
  const local = localSetupOfSuite();
  /** An account that may pause the registry; it uses no nonces of the minting wallet. */
  let admin: string;
  let branch = 0;
  let time: VirtualTime;

  beforeEach(() => (time = new VirtualTime()));

  before(async () => {
    admin = await local.account(1);
    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const [pauses, mints] = await Promise.all([registry.DEFAULT_ADMIN_ROLE(), registry.MINTER_ROLE()]);
    await grantRole(pauses, admin);
    await grantRole(mints, new Wallet(SECOND_KEY).address);
    await local.client.send('evm_setAutomine', [false]);
  });

  afterEach(async () => {
    await callRegistry('unpause');
    await mine();
  });

  async function grantRole(role: string, account: string): Promise<void> {
    const data = REGISTRY.encodeFunctionData('grantRole', [role, account]);
    await sendTransaction(local.client, { from: DEPLOYER, to: local.registryAddress, data });
  }

  async function mine(blocks = 1): Promise<void> {
    for (let mined = 0; mined < blocks; mined++) {
      const parent = await local.client.getBlock('latest');
      await local.client.send('evm_mine', [Number(parent?.timestamp) + 1 + branch]);
    }
  }

  /** Marks the end of the chain; the function that it returns reverts the chain to this block. */
  async function fork(): Promise<() => Promise<void>> {
    const snapshot: unknown = await local.client.send('evm_snapshot', []);
    return async () => {
      await local.client.send('evm_revert', [snapshot]);
      branch++;
    };
  }

  /** The fees put the call before all others in its block. */
  async function callRegistry(name: 'pause' | 'unpause'): Promise<void> {
    const data = name === 'pause' ? PAUSE : UNPAUSE;
    const fees = { maxFeePerGas: toQuantity(900n * GWEI), maxPriorityFeePerGas: toQuantity(90n * GWEI) };
    const call = { from: admin, to: local.registryAddress, data, gas: toQuantity(200_000), ...fees };
    await local.client.send('eth_sendTransaction', [call]);
  }

  /** A queue with one mint. */
  interface OneMint {
    queue: RunningQueue;
    tokenId: string;
    /** Lets time pass until it is mined or has failed. */
    outcome: () => Promise<string>;
    state: () => IssuanceState | undefined;
    /** Expects that it stays in this state. */
    expectToStay: (state: IssuanceState) => Promise<unknown>;
    untilLogged: (message: string) => Promise<unknown>;
    untilState: (state: IssuanceState) => Promise<unknown>;
  }

  /** Runs a queue with the mint in the journal, or a new one. */
  async function withMint(options: QueueOptions, work: (mint: OneMint) => Promise<unknown>): Promise<void> {
    const common = { network: PUBLIC, confirmations: CONFIRMATIONS, time };
    await withQueue(local, { ...common, ...options }, async (queue) => {
      const { issuances } = queue.journal;
      const [known] = issuances.values();
      const issuance = known ?? newIssuance();
      const { tokenId } = issuance;
      const outcome = known === undefined ? queue.mint(issuance) : queue.mintAgain(issuance);
      outcome.catch(() => undefined);
      const state = (): IssuanceState | undefined => issuances.get(tokenId)?.state;
      await work({
        queue,
        tokenId,
        outcome: () => time.settled(outcome),
        state,
        async expectToStay(expected) {
          await time.pass(LONG_MS);
          expect(state()).to.equal(expected);
        },
        untilLogged: (message) => time.until(message, () => queue.logged(message) > 0),
        untilState: (expected) => time.until(`it is ${expected}`, () => state() === expected),
      });
    });
  }

  const untilPending = async (count = 1): Promise<void> => {
    await time.until('they wait to be mined', async () => {
      return ((await local.client.send('eth_pendingTransactions', [])) as unknown[]).length === count;
    });
  };

  const untilMined = async ({ outcome }: OneMint): Promise<string> => {
    await untilPending();
    await mine();
    return outcome();
  };

  it('is deferred when it is refused after a node may have accepted it, and is minted later', async () => {
    const journal = createMemoryJournal(time);
    const answerer: Answerer = (method) => (method === SEND ? INTERNAL_ERROR : 'none');
    await withMint({ journal, answerer }, ({ untilState }) => untilState('submitted'));
    await callRegistry('pause');
    await mine(1 + CONFIRMATIONS);
    await withMint({ journal, answerer }, async (mint) => {
      const { queue, tokenId, outcome, untilLogged, untilState, expectToStay } = mint;
      await untilLogged(DEFERRED);
      await expectToStay('submitted');
      const deferred = queue.log.filter(({ msg }) => msg === DEFERRED);
      expect(JSON.stringify(deferred)).to.include('TRANSACTION_REJECTED');
      queue.answer(THROUGH);
      await callRegistry('unpause');
      await mine();
      await untilLogged('mint submitted');
      await mine();
      const hash = await outcome();
      expect(await mintsOf(local, tokenId)).to.deep.equal([hash]);
      await mine(CONFIRMATIONS);
      await untilState('final');
    });
  });

  it('is signed again when another transaction used its nonce, once that is final', async () => {
    await withMint({}, async ({ queue, outcome, untilState, untilLogged, expectToStay }) => {
      await untilState('submitted');
      const [first = { hash: '', nonce: -1 }] = queue.journal.transactions;
      await local.client.send('hardhat_dropTransaction', [first.hash]);
      await useNonce(first.nonce);
      await mine(CONFIRMATIONS);
      await expectToStay('submitted');
      expect(queue.journal.transactions).to.have.length(1);
      await mine();
      await untilLogged('mint signed again: somebody else used its nonce');
      await untilPending();
      await mine();
      expect(await outcome()).to.equal(queue.journal.transactions[1]?.hash);
    });
  });

  /** Sends a transaction of the minting wallet from elsewhere. */
  async function useNonce(nonce: number): Promise<void> {
    const call = { type: 2, chainId: 31337, to: DEPLOYER, gasLimit: 21_000n, nonce };
    const fees = { maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI };
    const raw = await new Wallet(DEPLOYER_KEY).signTransaction({ ...call, ...fees });
    await local.client.send(SEND, [raw]);
  }

  it('fails when it reverted, once that is final', async () => {
    await withMint({}, async ({ queue, outcome, untilState, expectToStay }) => {
      await untilState('submitted');
      await callRegistry('pause');
      await mine();
      const [{ hash } = { hash: '' }] = queue.journal.transactions;
      expect(await local.client.getTransactionReceipt(hash)).to.include({ status: 0 });
      await mine(CONFIRMATIONS - 1);
      await expectToStay('submitted');
      await mine();
      expect(await failureOf(outcome())).to.include({ code: 'MINT_REVERTED' });
      await untilState('failed');
      expect(queue.journal.transactions).to.have.length(1);
    });
  });

  it('is answered when it is mined, and final with CONFIRMATIONS blocks on top', async () => {
    await withMint({}, async (mint) => {
      const { queue, state, untilState, expectToStay } = mint;
      expect(await untilMined(mint)).to.equal(queue.journal.transactions[0]?.hash);
      expect(state()).to.equal('mined');
      await mine(CONFIRMATIONS - 1);
      await expectToStay('mined');
      await mine();
      await untilState('final');
    });
  });

  it('becomes final while the node gives no receipt of another mint', async () => {
    let refused = '';
    const answerer: Answerer = (method, params) =>
      method === 'eth_getTransactionReceipt' && params[0] === refused ? INTERNAL_ERROR : 'none';
    await withMint({ answerer }, async ({ queue, state, outcome, untilState }) => {
      await untilPending();
      refused = queue.journal.transactions[0]?.hash ?? '';
      const other = queue.mintMany(1, 1);
      await untilPending(2);
      await mine(1 + CONFIRMATIONS);
      await time.settled(other);
      await time.until('the other is final', () =>
        [...queue.journal.issuances.values()].some((one) => one.state === 'final'),
      );
      expect(state()).to.equal('submitted');
      refused = '';
      await outcome();
      await untilState('final');
    });
  });

  it('is followed into another block, and not sent again', async () => {
    const back = await fork();
    await withMint({}, async (mint) => {
      const { queue, untilState, expectToStay } = mint;
      await untilMined(mint);
      await back();
      // The other block comes before the queue concludes that the first is gone.
      await time.pass(LONG_MS / 3);
      for (const { raw } of queue.journal.transactions) await local.client.send(SEND, [raw]);
      await mine();
      await expectToStay('mined');
      await mine(CONFIRMATIONS);
      await untilState('final');
      expect(queue.journal.calls).to.include({ mined: 2, unmined: 0 });
      expect(queue.proxy.counts()[SEND]).to.equal(1);
    });
  });

  it('is sent again although a node still gives its receipt in the block that is gone', async () => {
    const back = await fork();
    await withMint({}, async (mint) => {
      const { queue, untilState, untilLogged } = mint;
      const hash = await untilMined(mint);
      const receipt = (await local.client.send('eth_getTransactionReceipt', [hash])) as object;
      queue.answer(async (method, params, forward) => {
        if (method !== 'eth_getTransactionReceipt' || params[0] !== hash) return 'none';
        const answer = (await forward()) as { result: object | null };
        return { result: answer.result ?? receipt };
      });
      await back();
      await mine(2);
      await untilLogged('mint sent again: the block that it was mined in is gone');
      await untilPending();
      await mine(1 + CONFIRMATIONS);
      await untilState('final');
    });
  });

  const restarts: [what: string, options: QueueOptions, transactions: number][] = [
    ['sent again', {}, 1],
    ['minted by the next wallet', NEXT, 2],
  ];
  for (const [what, options, transactions] of restarts)
    it(`is ${what} when its block disappeared while the queue was stopped`, async () => {
      const journal = createMemoryJournal(time);
      const back = await fork();
      await withMint({ journal }, untilMined);
      await back();
      await mine(2);
      await withMint({ journal, ...options }, async ({ untilState, untilLogged }) => {
        await untilLogged('mint sent again: the block that it was mined in is gone');
        await untilPending();
        await mine(1 + CONFIRMATIONS);
        await untilState('final');
        expect(journal.transactions).to.have.length(transactions);
      });
    });

  for (const [what, known, mints] of [
    ['sent', THROUGH, 2],
    ['signed, and no node has', (method) => (method === SEND ? 'drop request' : 'none'), 1],
  ] as [string, Answerer, number][])
    it(`is made once under the next wallet when the former wallet ${what} its transaction`, async () => {
      const journal = createMemoryJournal(time);
      await withMint({ journal, answerer: known }, () =>
        time.until('it is sent', () => journal.transactions.length === 1),
      );
      if (known === THROUGH) await untilPending();
      await withMint({ journal, answerer: likeGeth, ...NEXT }, async ({ outcome, untilState }) => {
        await untilPending(mints);
        await mine();
        const hash = await outcome();
        expect((await local.client.getTransactionReceipt(hash))?.status).to.equal(1);
        await mine(CONFIRMATIONS);
        await untilState('final');
      });
    });

  it('never fails once mined: it waits, also after a restart, until the registry allows it', async () => {
    const journal = createMemoryJournal(time);
    const back = await fork();
    await withMint({ journal }, async (mint) => {
      const { untilState, untilLogged, expectToStay } = mint;
      await untilMined(mint);
      await back();
      await mine(2);
      await untilState('submitted');
      await untilPending();
      await callRegistry('pause');
      await mine(1 + CONFIRMATIONS);
      await untilLogged(DEFERRED);
      await expectToStay('submitted');
    });
    await withMint({ journal }, async ({ outcome, untilState, untilLogged, expectToStay }) => {
      await untilLogged(DEFERRED);
      await expectToStay('submitted');
      await callRegistry('unpause');
      await mine();
      await untilPending();
      await mine(1 + CONFIRMATIONS);
      await untilState('final');
      expect(journal.transactions).to.have.length(2);
      expect(await outcome()).to.equal(journal.transactions[1]?.hash);
    });
  });

  it('is minted again, and counted, when a deep reorganisation removed it and others before it', async () => {
    let reorganised = 0;
    const lifecycle = createLifecycle();
    lifecycle.on('mints reorganised', (mints) => (reorganised += mints));
    const back = await fork();
    await withMint({ lifecycle }, async ({ queue, outcome, untilState, untilLogged }) => {
      await untilPending();
      await mine();
      const hashes = [await outcome()];
      const second = queue.mint();
      await untilPending();
      await mine(1 + CONFIRMATIONS);
      hashes.push(await time.settled(second));
      const areFinal = (): boolean =>
        [...queue.journal.issuances.values()].every(({ state }) => state === 'final');
      await time.until('both are final', areFinal);
      await back();
      await mine(2 * CONFIRMATIONS);
      await untilState('submitted');
      expect(reorganised).to.equal(2);
      await untilLogged(REORGANISED);
      const [line] = queue.log.filter(({ msg }) => msg === REORGANISED);
      expect(line).to.include({ level: 'error', mints: 2 });
      await untilPending(2);
      await mine(1 + CONFIRMATIONS);
      await time.until('both are final again', areFinal);
      expect(queue.journal.transactions.map(({ hash }) => hash)).to.deep.equal(hashes);
    });
  });

  it('stays final while a node denies its block for less time than a node may be behind', async () => {
    await withMint({}, async ({ queue, outcome, untilState }) => {
      await untilPending();
      await mine(1 + CONFIRMATIONS);
      const receipt = await local.client.getTransactionReceipt(await outcome());
      await untilState('final');
      let denied = 0;
      queue.answer(async (method, [block], forward) => {
        if (method !== 'eth_getBlockByNumber' || Number(block) !== receipt?.blockNumber) return 'none';
        const { result } = (await forward()) as { result: object };
        return denied++ < 1 ? { result: { ...result, hash: ZeroHash } } : 'none';
      });
      await time.until('the block is asked for', () => denied > 1);
      await time.pass(LONG_MS);
      expect(queue.logged(REORGANISED)).to.equal(0);
    });
  });
});
