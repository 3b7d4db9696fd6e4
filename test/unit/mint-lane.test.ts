import { expect } from 'chai';
import { makeError } from 'ethers';
import { classifyRefusal, type Refusal } from '../../service/chain/classify-refusal';
import { createBroadcastWidth } from '../../service/minting/broadcast-width';
import { createCurrentFees } from '../../service/minting/current-fees';
import { decideRefusal, type Healing, type RefusedFlight } from '../../service/minting/decide-refusal';
import { giveNonces } from '../../service/minting/give-nonces';
import { judgeReceipts, mintTopics, type MintReceipt } from '../../service/minting/judge-receipts';
import { canStillBeMined, type SignedMint } from '../../service/minting/mint';
import { raiseFees } from '../../service/minting/raise-fees';

describe('the decisions of the lane of mints', () => {
  describe('which nonces are given', () => {
    const view = { floor: 5, pending: 5, highestHeld: undefined, freed: [] };

    it("begins with the node's count", () => {
      expect(giveNonces(3, view)).to.deep.equal([5, 6, 7]);
    });

    it('follows what the lane holds, and what others have sent', () => {
      expect(giveNonces(2, { ...view, highestHeld: 8 })).to.deep.equal([9, 10]);
      expect(giveNonces(2, { ...view, highestHeld: 8, pending: 12 })).to.deep.equal([12, 13]);
    });

    it('does not believe a node that is behind', () => {
      expect(giveNonces(1, { ...view, floor: 9, pending: 5 })).to.deep.equal([9]);
    });

    it('gives first what was taken back, the lowest first', () => {
      const freed = new Set([7, 6]);
      expect(giveNonces(3, { ...view, highestHeld: 9, freed })).to.deep.equal([6, 7, 10]);
      expect(giveNonces(1, { ...view, highestHeld: 9, freed })).to.deep.equal([6]);
    });

    it('does not give what others have used, nor anything twice', () => {
      expect(giveNonces(2, { ...view, pending: 7, highestHeld: 9, freed: [6] })).to.deep.equal([10, 11]);
      expect(giveNonces(3, { ...view, highestHeld: 5, freed: [6, 7] })).to.deep.equal([6, 7, 8]);
    });
  });

  describe('what nodes say', () => {
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
      it(`"${message.slice(0, 50)}" is: ${refusal}`, () => {
        const payload = { id: 1, jsonrpc: '2.0', method: 'eth_sendRawTransaction', params: [] };
        const info = { error: { code: -32000, message }, payload };
        const error = makeError('could not coalesce error', 'UNKNOWN_ERROR', { error: info.error, info });
        expect(classifyRefusal(error)).to.equal(refusal);
      });

    it("knows ethers' own codes", () => {
      const told = { transaction: {}, info: {} } as never;
      expect(classifyRefusal(makeError('', 'NONCE_EXPIRED', told))).to.equal('nonce too low');
      expect(classifyRefusal(makeError('', 'REPLACEMENT_UNDERPRICED', told))).to.equal('nonce held');
      expect(classifyRefusal(makeError('', 'INSUFFICIENT_FUNDS', told))).to.equal('no funds');
    });
  });

  describe('what is done about a refusal', () => {
    const flight: RefusedFlight = {
      refusal: 'other',
      nonce: 10,
      attempts: 1,
      estimates: 0,
      pending: 10,
      floor: 10,
      isChainShorter: false,
      pendingHolder: 'nobody',
    };
    const cases: [string, Partial<RefusedFlight>, Healing][] = [
      ['too low, and the node counts more', { refusal: 'nonce too low', pending: 11 }, 'sign anew'],
      ['too low, and the node does not', { refusal: 'nonce too low' }, 'send again later'],
      ['too low, whatever it counts', { refusal: 'nonce too low', attempts: 5 }, 'sign anew'],
      ['held, and the node counts it', { refusal: 'nonce held', pending: 11 }, 'sign anew'],
      ['held, and the node does not', { refusal: 'nonce held' }, 'send again later'],
      ['too high by now no more', { refusal: 'nonce too high' }, 'send again'],
      ['too high, said twice', { refusal: 'nonce too high', attempts: 2 }, 'send again later'],
      [
        'too high, the one before is about to be sent',
        { refusal: 'nonce too high', pending: 9, pendingHolder: 'being sent' },
        'send again',
      ],
      [
        'too high, the one before was lost',
        { refusal: 'nonce too high', pending: 9, floor: 9, pendingHolder: 'in flight' },
        'send those before again',
      ],
      ['too high, nobody is before', { refusal: 'nonce too high', pending: 9, floor: 9 }, 'fill hole'],
      ['too high, the node is behind', { refusal: 'nonce too high', pending: 3 }, 'send again later'],
      [
        'too high, the chain is another',
        { refusal: 'nonce too high', pending: 3, isChainShorter: true },
        'realign',
      ],
      ['the fee is too low', { refusal: 'fee too low' }, 'offer more'],
      ['the fee is too low, again and again', { refusal: 'fee too low', attempts: 5 }, 'fail'],
      ['the gas', { refusal: 'gas' }, 'estimate anew'],
      ['the gas, estimated again', { refusal: 'gas', estimates: 2 }, 'fail'],
      ['no funds', { refusal: 'no funds' }, 'wait for funds'],
      ['busy, however often', { refusal: 'busy', attempts: 50 }, 'send again later'],
      ['something else', {}, 'send again later'],
      ['something else, again and again', { attempts: 5 }, 'fail'],
    ];
    for (const [what, change, healing] of cases)
      it(`${what}: ${healing}`, () => {
        expect(decideRefusal({ ...flight, ...change })).to.equal(healing);
      });
  });

  describe('what a replacement offers', () => {
    it('offers an eighth more of both, rounded up', () => {
      const offered = { type: 2, maxFeePerGas: 1001n, maxPriorityFeePerGas: 9n } as const;
      const now = { type: 2, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n } as const;
      expect(raiseFees(offered, now)).to.deep.equal({
        type: 2,
        maxFeePerGas: 1127n,
        maxPriorityFeePerGas: 11n,
      });
    });

    it('offers at least what it takes now, and never more to the miner than in all', () => {
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

    it('offers a higher price where there is no base fee', () => {
      const [offered, now] = [80n, 1n].map((gasPrice) => ({ type: 0, gasPrice }) as const);
      expect(raiseFees(offered!, now!)).to.deep.equal({ type: 0, gasPrice: 90n });
    });

    it('offers more to the miner than nothing', () => {
      const fees = { type: 2, maxFeePerGas: 80n, maxPriorityFeePerGas: 0n } as const;
      expect(raiseFees(fees, fees)).to.deep.equal({ type: 2, maxFeePerGas: 90n, maxPriorityFeePerGas: 1n });
    });

    it('is not made where gas is free', () => {
      expect(raiseFees({ type: 0, gasPrice: 0n }, { type: 0, gasPrice: 0n })).to.equal(undefined);
    });
  });

  describe('what receipts say', () => {
    const tokenId = 'ab'.repeat(32);
    const token = { registryAddress: '0x00000000000000000000000000000000000000Aa', tokenId };
    const [transfer = '', from = '', id = ''] = mintTopics(tokenId);
    const topics = [transfer, from, `0x${'0'.repeat(64)}`, id];
    const log = { address: token.registryAddress.toLowerCase(), topics };
    const receipt = (change: Partial<MintReceipt>): MintReceipt => ({
      transactionHash: '0x1',
      status: '0x1',
      gasUsed: '0x10',
      logs: [log],
      ...change,
    });

    it('tells a token that was made, whatever the others are', () => {
      const reverted = receipt({ transactionHash: '0x2', status: '0x0', logs: [] });
      expect(judgeReceipts([reverted, receipt({})], token)).to.deep.equal({ state: 'mined', hash: '0x1' });
    });

    it('tells what reverted, and the gas that it used', () => {
      const verdict = judgeReceipts([receipt({ status: '0x0', logs: [] })], token);
      expect(verdict).to.deep.equal({ state: 'reverted', hash: '0x1', usedGas: 16n });
    });

    it('tells that nothing was made: the log is of another token, another registry, or no mint', () => {
      const others = [
        { ...log, topics: [transfer, from, from, `0x${'cd'.repeat(32)}`] },
        { ...log, address: '0x00000000000000000000000000000000000000bb' },
        { ...log, topics: [transfer, `0x${'1'.repeat(64)}`, from, id] },
      ];
      for (const other of others)
        expect(judgeReceipts([receipt({ logs: [other] })], token)).to.include({ state: 'no token' });
      expect(judgeReceipts([], token)).to.deep.equal({ state: 'none' });
    });
  });

  it('takes a mint for lost only when none of its transactions can be mined', () => {
    const signed = (nonce: number, mayBeTaken: boolean): SignedMint => ({
      tokenId: '',
      hash: '',
      nonce,
      raw: '',
      gasLimit: 0n,
      fees: { type: 0, gasPrice: 0n },
      mayBeTaken,
    });
    expect(canStillBeMined([signed(4, true)], 5)).to.equal(false);
    expect(canStillBeMined([signed(4, true), signed(5, false)], 5)).to.equal(false);
    expect(canStillBeMined([signed(4, true), signed(5, true)], 5)).to.equal(true);
  });

  it('sends one after the other until a node lets transactions wait, and again when it refuses', () => {
    const width = createBroadcastWidth(false);
    width.taken();
    expect(width.now()).to.equal(1);
    width.waits();
    for (let taken = 0; taken < 100; taken++) width.taken();
    expect(width.now()).to.equal(16);
    width.refused();
    width.waits();
    width.taken();
    expect(width.now()).to.equal(1);
  });

  it('reads fees once for a while, and again after a failure', async () => {
    let read = 0;
    const fees = createCurrentFees(async () => {
      if (++read === 1) throw new Error('away');
      return { type: 0, gasPrice: BigInt(read) };
    }, 60_000);
    expect(await fees.read().catch(() => 'failed')).to.equal('failed');
    expect(await Promise.all([fees.read(), fees.read()])).to.deep.equal([
      { type: 0, gasPrice: 2n },
      { type: 0, gasPrice: 2n },
    ]);
    fees.forget();
    expect(await fees.read()).to.deep.equal({ type: 0, gasPrice: 3n });
  });
});
