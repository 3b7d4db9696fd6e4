import { expect } from 'chai';
import { makeError } from 'ethers';
import { classifyRefusal, type Refusal } from '../../service/chain/node-errors';
import { decideRejection, type Rejection, type Remedy } from '../../service/minting/handle-rejections';
import { judgeReceipts, mintTopics, type MintReceipt } from '../../service/minting/mint-chain';
import { Nonces, raiseFees } from '../../service/minting/transaction-terms';
import { BroadcastWidth } from '../../service/minting/queue-parts';

describe('the decisions of the mint queue', () => {
  describe('the choice of nonces', () => {
    const noncesFrom = (floor: number): Nonces => {
      const nonces = new Nonces();
      nonces.raise(floor);
      return nonces;
    };
    /** After the nonces from `floor` to `upTo` were given and settled, and those in `back` taken back. */
    const freed = (floor: number, upTo: number, back: readonly number[]): Nonces => {
      const nonces = noncesFrom(floor);
      nonces.settle(nonces.give(upTo - floor + 1, floor));
      for (const nonce of back) nonces.free(nonce);
      return nonces;
    };

    it("starts at the node's count", () => {
      expect(noncesFrom(5).give(3, 5)).to.deep.equal([5, 6, 7]);
    });

    it('continues after the nonces that the queue holds or others have used', () => {
      expect(noncesFrom(5).give(2, 5, 8)).to.deep.equal([9, 10]);
      expect(noncesFrom(5).give(2, 12, 8)).to.deep.equal([12, 13]);
    });

    it('ignores a node that is behind', () => {
      expect(noncesFrom(9).give(1, 5)).to.deep.equal([9]);
    });

    it('begins with the nonces that were taken back, the lowest first', () => {
      expect(freed(5, 9, [7, 6]).give(3, 5, 9)).to.deep.equal([6, 7, 10]);
      expect(freed(5, 9, [7, 6]).give(1, 5, 9)).to.deep.equal([6]);
    });

    it('gives no nonce that others have used, and none twice', () => {
      expect(freed(5, 9, [6]).give(2, 7, 9)).to.deep.equal([10, 11]);
      expect(freed(5, 7, [6, 7]).give(3, 5, 5)).to.deep.equal([6, 7, 8]);
      const nonces = noncesFrom(5);
      expect([nonces.give(2, 5), nonces.give(2, 5)]).to.deep.equal([
        [5, 6],
        [7, 8],
      ]);
    });

    it('forgets a nonce that was taken back once nodes report it as used', () => {
      const nonces = freed(5, 9, [6, 7]);
      nonces.note(7, true);
      expect(nonces.lowestFreed()).to.equal(7);
      nonces.free(6);
      expect(nonces.lowestFreed()).to.equal(7);
    });
  });

  describe('the classification of a refusal', () => {
    const answers: [string, Refusal][] = [
      [
        "Nonce too low. Expected nonce to be 34 but got 33. Note that transactions can't be queued.",
        'nonce too low',
      ],
      ['nonce too low: next nonce 7, tx nonce 6', 'nonce too low'],
      ['OldNonce, Current nonce: 3, nonce of rejected tx: 2', 'nonce too low'],
      ['Transaction nonce is too low. Try incrementing the nonce.', 'nonce too low'],
      ['Nonce too high. Expected nonce to be 34 but got 35.', 'nonce too high'],
      ['replacement transaction underpriced', 'nonce held'],
      [
        'Replacement transaction underpriced. A gasPrice/maxFeePerGas of at least 5 is necessary',
        'nonce held',
      ],
      [
        'Transaction gas price is too low. There is another transaction with same nonce in the queue.',
        'nonce held',
      ],
      ['INTERNAL_ERROR: could not replace existing tx', 'nonce held'],
      ['ReplacementNotAllowed', 'nonce held'],
      ['Priority is too low: (20 vs 20)', 'nonce held'],
      ['under min gas price', 'fee too low'],
      ['GasLimitExceeded, Gas limit: 1, gas limit of rejected tx: 2', 'gas'],
      ['gas limit is too high', 'gas'],
      ['pending sub-pool is full', 'busy'],
      ['future transaction tries to replace pending', 'busy'],
      ['Transaction nonce is too distant from current sender nonce', 'busy'],
      ['transaction underpriced: gas tip cap 1, minimum needed 25', 'fee too low'],
      ['max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 7', 'fee too low'],
      [
        'Transaction maxFeePerGas (1) is too low for the next block, which has a baseFeePerGas of 9',
        'fee too low',
      ],
      ['FeeTooLow, MaxFeePerGas too low.', 'fee too low'],
      ['Gas price below configured minimum gas price', 'fee too low'],
      ['insufficient funds for gas * price + value: balance 0, tx cost 1', 'no funds'],
      ["Sender doesn't have enough funds to send tx. The max upfront cost is: 9", 'no funds'],
      ['Upfront cost exceeds account balance', 'no funds'],
      ['gas required exceeds allowance (0)', 'no funds'],
      ['intrinsic gas too low: have 20000, want 21000', 'gas'],
      ['Transaction requires at least 21000 gas but got 20000', 'gas'],
      ['exceeds block gas limit', 'gas'],
      ['Transaction gas limit is 90000000 and exceeds transaction gas cap of 16777216', 'gas'],
      ['txpool is full', 'busy'],
      ['daily request count exceeded, request rate limited', 'busy'],
      ['the node has a headache', 'other'],
    ];

    for (const [message, refusal] of answers)
      it(`reads "${message.slice(0, 50)}" as: ${refusal}`, () => {
        const payload = { id: 1, jsonrpc: '2.0', method: 'eth_sendRawTransaction', params: [] };
        const info = { error: { code: -32000, message }, payload };
        const error = makeError('could not coalesce error', 'UNKNOWN_ERROR', { error: info.error, info });
        expect(classifyRefusal(error)).to.equal(refusal);
      });

    it("knows ethers' own error codes", () => {
      const told = { transaction: {}, info: {} } as never;
      expect(classifyRefusal(makeError('', 'NONCE_EXPIRED', told))).to.equal('nonce too low');
      expect(classifyRefusal(makeError('', 'REPLACEMENT_UNDERPRICED', told))).to.equal('nonce held');
      expect(classifyRefusal(makeError('', 'INSUFFICIENT_FUNDS', told))).to.equal('no funds');
    });
  });

  describe('the action after a refusal', () => {
    const rejection: Rejection = {
      refusal: 'other',
      nonce: 10,
      attempts: 1,
      mayBeTaken: false,
      estimates: 0,
      pending: 10,
      floor: 10,
      isChainShorter: false,
      pendingHolder: 'nobody',
    };
    const cases: [string, Partial<Rejection>, Remedy][] = [
      ['nonce too low, and the node counts it', { refusal: 'nonce too low', pending: 11 }, 'sign anew'],
      ['nonce too low, and the node does not count it', { refusal: 'nonce too low' }, 'send again later'],
      [
        'nonce too low five times, and the node does not count it',
        { refusal: 'nonce too low', attempts: 5 },
        'sign anew',
      ],
      [
        'nonce too low, and the node counts it, but some node may have the transaction',
        { refusal: 'nonce too low', pending: 11, mayBeTaken: true },
        'watch',
      ],
      [
        'nonce held, and the node counts it, but some node may have the transaction',
        { refusal: 'nonce held', pending: 11, mayBeTaken: true },
        'watch',
      ],
      ['nonce held, and the node counts it', { refusal: 'nonce held', pending: 11 }, 'sign anew'],
      ['nonce held, and the node does not count it', { refusal: 'nonce held' }, 'send again later'],
      [
        'nonce held, and no transaction has the nonce before it',
        { refusal: 'nonce held', pending: 9, floor: 9 },
        'fill hole',
      ],
      [
        'nonce held, and the transaction before it is about to be sent',
        { refusal: 'nonce held', pending: 9, floor: 9, pendingHolder: 'being sent' },
        'send again later',
      ],
      [
        'nonce held, and the transaction before it waits for a lower base fee',
        { refusal: 'nonce held', pending: 9, floor: 9, pendingHolder: 'pending' },
        'send again later',
      ],
      ['nonce held, and the node is behind', { refusal: 'nonce held', pending: 3 }, 'send again later'],
      [
        'nonce held, and the chain has been shorter for too long',
        { refusal: 'nonce held', pending: 3, isChainShorter: true },
        'reset nonces',
      ],
      ['nonce too high, but the node has caught up', { refusal: 'nonce too high' }, 'send again'],
      [
        'nonce too high twice, but the node has caught up',
        { refusal: 'nonce too high', attempts: 2 },
        'send again later',
      ],
      [
        'nonce too high, and the transaction before it is about to be sent',
        { refusal: 'nonce too high', pending: 9, pendingHolder: 'being sent' },
        'send again',
      ],
      [
        'nonce too high, and the node lost the transaction before it',
        { refusal: 'nonce too high', pending: 9, floor: 9, pendingHolder: 'pending' },
        'send those before again',
      ],
      [
        'nonce too high, and no transaction has the nonce before it',
        { refusal: 'nonce too high', pending: 9, floor: 9 },
        'fill hole',
      ],
      [
        'nonce too high, and the node is behind',
        { refusal: 'nonce too high', pending: 3 },
        'send again later',
      ],
      [
        'nonce too high, and the chain is another one',
        { refusal: 'nonce too high', pending: 3, isChainShorter: true },
        'reset nonces',
      ],
      ['fee too low', { refusal: 'fee too low' }, 'offer more'],
      ['fee too low five times', { refusal: 'fee too low', attempts: 5 }, 'give up'],
      ['wrong gas limit', { refusal: 'gas' }, 'estimate again'],
      ['wrong gas limit after two more estimates', { refusal: 'gas', estimates: 2 }, 'give up'],
      ['no funds', { refusal: 'no funds' }, 'wait for funds'],
      ['node busy, even 50 times', { refusal: 'busy', attempts: 50 }, 'send again later'],
      ['another refusal', {}, 'send again later'],
      ['another refusal, five times', { attempts: 5 }, 'give up'],
    ];
    for (const [what, change, remedy] of cases)
      it(`is "${remedy}" for: ${what}`, () => {
        expect(decideRejection({ ...rejection, ...change })).to.equal(remedy);
      });
  });

  describe('the fees of a replacement', () => {
    it('are an eighth higher each, rounded up', () => {
      const offered = { type: 2, maxFeePerGas: 1001n, maxPriorityFeePerGas: 9n } as const;
      const now = { type: 2, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n } as const;
      expect(raiseFees(offered, now)).to.deep.equal({
        type: 2,
        maxFeePerGas: 1127n,
        maxPriorityFeePerGas: 11n,
      });
    });

    it('are at least the current fees, with a maximum of at least the priority fee', () => {
      const offered = { type: 2, maxFeePerGas: 100n, maxPriorityFeePerGas: 10n } as const;
      const now = { type: 2, maxFeePerGas: 5000n, maxPriorityFeePerGas: 30n } as const;
      expect(raiseFees(offered, now)).to.deep.equal({
        type: 2,
        maxFeePerGas: 5000n,
        maxPriorityFeePerGas: 30n,
      });
      const odd = { type: 2, maxFeePerGas: 1n, maxPriorityFeePerGas: 900n } as const;
      expect(raiseFees(offered, odd)).to.deep.equal({
        type: 2,
        maxFeePerGas: 900n,
        maxPriorityFeePerGas: 900n,
      });
    });

    it('are an eighth higher if they are a gas price', () => {
      const [offered, now] = [80n, 1n].map((gasPrice) => ({ type: 0, gasPrice }) as const);
      expect(raiseFees(offered!, now!)).to.deep.equal({ type: 0, gasPrice: 90n });
    });

    it('raise a priority fee of 0 to 1 wei', () => {
      const fees = { type: 2, maxFeePerGas: 80n, maxPriorityFeePerGas: 0n } as const;
      expect(raiseFees(fees, fees)).to.deep.equal({ type: 2, maxFeePerGas: 90n, maxPriorityFeePerGas: 1n });
    });

    it('are undefined where gas is free', () => {
      expect(raiseFees({ type: 0, gasPrice: 0n }, { type: 0, gasPrice: 0n })).to.equal(undefined);
    });
  });

  describe('the verdict from receipts', () => {
    const tokenId = 'ab'.repeat(32);
    const registry = '0x00000000000000000000000000000000000000Aa';
    const block = { blockNumber: '0x7', blockHash: `0x${'07'.repeat(32)}` };
    const mined = { txHash: '0x1', block: { number: 7, hash: block.blockHash } };
    const [transfer = '', from = '', id = ''] = mintTopics(tokenId);
    const topics = [transfer, from, `0x${'0'.repeat(64)}`, id];
    const log = { address: registry.toLowerCase(), topics };
    const receipt = (change: Partial<MintReceipt>): MintReceipt => ({
      transactionHash: '0x1',
      ...block,
      status: '0x1',
      gasUsed: '0x10',
      logs: [log],
      ...change,
    });

    it('is "mined" if one receipt has the mint, even if another reverted', () => {
      const reverted = receipt({ transactionHash: '0x2', status: '0x0', logs: [] });
      expect(judgeReceipts([reverted, receipt({})], registry, tokenId)).to.deep.equal({
        state: 'mined',
        mined,
      });
    });

    it('is "reverted" with the gas used if the transaction reverted', () => {
      const verdict = judgeReceipts([receipt({ status: '0x0', logs: [] })], registry, tokenId);
      expect(verdict).to.deep.equal({ state: 'reverted', hash: '0x1', usedGas: 16n });
    });

    it('is "no token" if the log is of another token or registry or no mint; "none" if no receipt', () => {
      const others = [
        { ...log, topics: [transfer, from, from, `0x${'cd'.repeat(32)}`] },
        { ...log, address: '0x00000000000000000000000000000000000000bb' },
        { ...log, topics: [transfer, `0x${'1'.repeat(64)}`, from, id] },
      ];
      for (const other of others)
        expect(judgeReceipts([receipt({ logs: [other] })], registry, tokenId)).to.include({
          state: 'no token',
        });
      expect(judgeReceipts([], registry, tokenId)).to.deep.equal({ state: 'none' });
    });
  });

  it('send 16 together, but one at a time if the node mines at once or has refused one', () => {
    const width = new BroadcastWidth(true);
    expect(width.now()).to.equal(1);
    width.minesAtOnce = false;
    expect(width.now()).to.equal(16);
    width.refused();
    expect(width.now()).to.equal(1);
  });
});
