import { chainOf } from '../helpers/chain/fake-nodes';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { makeError } from 'ethers';
import { ALREADY_KNOWN, classifyRefusal, type Refusal } from '../../service/chain/node-errors';
import { broadcast } from '../../service/chain/transactions';
import { decideRejection, type Rejection, type Remedy } from '../../service/minting/decide-rejection';
import type { Mint, SignedMint } from '../../service/minting/mint';
import { judgeReceipts, MintNode, mintTopics, type MintReceipt } from '../../service/minting/node';
import { Nonces, raiseFees } from '../../service/minting/transaction-terms';

describe('the decisions of the mint queue', () => {
  describe('the choice of nonces', () => {
    const noncesFrom = (floor: number): Nonces => {
      const nonces = new Nonces(systemTime);
      nonces.raise(floor);
      return nonces;
    };
    /** After the nonces from `floor` to `upTo` were given and settled, and those in `back` taken back. */
    const freed = (floor: number, upTo: number, back: readonly number[]): Nonces => {
      const nonces = noncesFrom(floor);
      nonces.settle(nonces.reserve(upTo - floor + 1, floor));
      for (const nonce of back) nonces.free(nonce);
      return nonces;
    };

    it("starts at the node's count", () => {
      expect(noncesFrom(5).reserve(3, 5)).to.deep.equal([5, 6, 7]);
    });

    it('continues after the nonces that the queue holds or others have used', () => {
      expect(noncesFrom(5).reserve(2, 5, 8)).to.deep.equal([9, 10]);
      expect(noncesFrom(5).reserve(2, 12, 8)).to.deep.equal([12, 13]);
    });

    it('ignores a node that is behind', () => {
      expect(noncesFrom(9).reserve(1, 5)).to.deep.equal([9]);
    });

    it('begins with the nonces that were taken back, the lowest first', () => {
      expect(freed(5, 9, [7, 6]).reserve(3, 5, 9)).to.deep.equal([6, 7, 10]);
      expect(freed(5, 9, [7, 6]).reserve(1, 5, 9)).to.deep.equal([6]);
    });

    it('gives no nonce that others have used, and none twice', () => {
      expect(freed(5, 9, [6]).reserve(2, 7, 9)).to.deep.equal([10, 11]);
      expect(freed(5, 7, [6, 7]).reserve(3, 5, 5)).to.deep.equal([6, 7, 8]);
      const nonces = noncesFrom(5);
      expect([nonces.reserve(2, 5), nonces.reserve(2, 5)]).to.deep.equal([
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
      nonces.reset(3);
      expect(nonces.lowestFreed()).to.equal(undefined);
    });
  });

  describe('the classification of a refusal', () => {
    const answers: Partial<Record<Refusal, string[]>> = {
      'nonce too low': [
        "Nonce too low. Expected nonce to be 34 but got 33. Note that transactions can't be queued.",
        'nonce too low: next nonce 7, tx nonce 6',
        'OldNonce, Current nonce: 3, nonce of rejected tx: 2',
        'Transaction nonce is too low. Try incrementing the nonce.',
      ],
      'nonce too high': ['Nonce too high. Expected nonce to be 34 but got 35.'],
      'nonce held': [
        'replacement transaction underpriced',
        'Replacement transaction underpriced. A gasPrice/maxFeePerGas of at least 5 is necessary',
        'Transaction gas price is too low. There is another transaction with same nonce in the queue.',
        'INTERNAL_ERROR: could not replace existing tx',
        'ReplacementNotAllowed',
        'Priority is too low: (20 vs 20)',
      ],
      'fee too low': [
        'under min gas price',
        'transaction underpriced: gas tip cap 1, minimum needed 25',
        'max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 7',
        'Transaction maxFeePerGas (1) is too low for the next block, which has a baseFeePerGas of 9',
        'FeeTooLow, MaxFeePerGas too low.',
        'Gas price below configured minimum gas price',
        'tip cap 1500000000 < 30000000000',
        'gas tip must be 30 gwei',
        'priority fee: 1 gwei, required: 30 gwei',
        'gas price needed: 25,000,000,000',
      ],
      gas: [
        'GasLimitExceeded, Gas limit: 1, gas limit of rejected tx: 2',
        'gas limit is too high',
        'intrinsic gas too low: have 20000, want 21000',
        'Transaction requires at least 21000 gas but got 20000',
        'exceeds block gas limit',
        'Transaction gas limit is 90000000 and exceeds transaction gas cap of 16777216',
      ],
      'no funds': [
        'insufficient funds for gas * price + value: balance 0, tx cost 1',
        "Sender doesn't have enough funds to send tx. The max upfront cost is: 9",
        'Upfront cost exceeds account balance',
        'gas required exceeds allowance (0)',
      ],
      busy: [
        'pending sub-pool is full',
        'future transaction tries to replace pending',
        'Transaction nonce is too distant from current sender nonce',
        'txpool is full',
        'daily request count exceeded, request rate limited',
      ],
      other: ['the node has a headache'],
    };

    it('does not read "unknown transaction type" as: the node has it', () => {
      expect('Known transaction').to.match(ALREADY_KNOWN);
      expect('unknown transaction type: 2').not.to.match(ALREADY_KNOWN);
    });

    it('leaves open whether a node that answers too late, or 504, has it, unless it knows it', async () => {
      for (const error of [
        makeError('late', 'TIMEOUT', { operation: 'request', reason: 'timeout' }),
        makeError('server response 504', 'SERVER_ERROR', { request: 'https://node.example/' }),
      ])
        for (const [known, state] of [
          [null, 'open'],
          [{}, 'taken'],
        ] as const) {
          const send = async (method: string): Promise<unknown> => {
            if (method !== 'eth_sendRawTransaction') return known;
            throw error;
          };
          expect(await broadcast(chainOf(send), '0x02')).to.include({ state });
        }
    });

    for (const [refusal, messages] of Object.entries(answers))
      it(`reads what nodes say as: ${refusal}`, () => {
        const payload = { id: 1, jsonrpc: '2.0', method: 'eth_sendRawTransaction', params: [] };
        for (const message of messages) {
          const info = { error: { code: -32000, message }, payload };
          const error = makeError('could not coalesce error', 'UNKNOWN_ERROR', { error: info.error, info });
          expect(classifyRefusal(error), message).to.equal(refusal);
        }
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
      alike: 1,
      mayBeTaken: false,
      estimates: 0,
      pending: 10,
      floor: 10,
      isChainShorter: false,
      pendingHolder: 'nobody',
    };
    /** The node counts the nonce. */
    const counted = { pending: 11 };
    /** The node counts less than the nonce: the transaction before it is missing, or the node is behind. */
    const isMissing = { pending: 9, floor: 9 };
    const isBehind = { pending: 3 };
    const [low, held, high] = (['nonce too low', 'nonce held', 'nonce too high'] as const).map(
      (refusal) =>
        (more: Partial<Rejection> = {}) => ({ refusal, ...more }),
    );
    const cases: [Remedy, ...Partial<Rejection>[]][] = [
      ['sign anew', low!(counted), low!({ attempts: 5 }), held!(counted)],
      // Some node may have the transaction.
      ['watch', low!({ ...counted, mayBeTaken: true }), held!({ ...counted, mayBeTaken: true })],
      ['send again later', low!(), held!(), held!(isBehind), high!({ attempts: 2 }), high!(isBehind)],
      ['fill hole', held!(isMissing), high!(isMissing)],
      // The transaction before it is about to be sent, or waits for a lower base fee.
      ['send again later', held!({ ...isMissing, pendingHolder: 'being sent' })],
      ['send again later', held!({ ...isMissing, pendingHolder: 'pending' })],
      ['reset nonces', held!({ ...isBehind, isChainShorter: true })],
      ['reset nonces', high!({ ...isBehind, isChainShorter: true })],
      // The node has caught up, or the transaction before it is about to be sent.
      ['send again', high!(), high!({ pending: 9, pendingHolder: 'being sent' })],
      // The node lost the transaction before it.
      ['send those before again', high!({ ...isMissing, pendingHolder: 'pending' })],
      ['offer more', { refusal: 'fee too low' }],
      ['give up', { refusal: 'fee too low', alike: 5 }, { refusal: 'gas', estimates: 2 }, { alike: 5 }],
      ['estimate again', { refusal: 'gas' }],
      ['wait for funds', { refusal: 'no funds' }],
      ['send again later', { refusal: 'busy', alike: 50 }, {}, { attempts: 50, alike: 4 }],
    ];
    for (const [remedy, ...changes] of cases)
      for (const change of changes)
        it(`is "${remedy}" for ${JSON.stringify({ refusal: 'other', ...change })}`, () => {
          expect(decideRejection({ ...rejection, ...change })).to.equal(remedy);
        });
  });

  describe('the fees of a replacement', () => {
    const fees = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) =>
      ({ type: 2, maxFeePerGas, maxPriorityFeePerGas }) as const;
    const price = (gasPrice: bigint) => ({ type: 0, gasPrice }) as const;

    for (const [what, offered, now, replacement] of [
      ['are an eighth higher each, rounded up', fees(1001n, 9n), fees(1n, 1n), fees(1127n, 11n)],
      ['are at least the current fees', fees(100n, 10n), fees(5000n, 30n), fees(5000n, 30n)],
      ['have a maximum of at least the priority fee', fees(100n, 10n), fees(1n, 900n), fees(900n, 900n)],
      ['are an eighth higher if they are a gas price', price(80n), price(1n), price(90n)],
      ['raise a priority fee of 0 to 1 wei', fees(80n, 0n), fees(80n, 0n), fees(90n, 1n)],
      ['are undefined where gas is free', price(0n), price(0n), undefined],
    ] as const)
      it(what, () => {
        expect(raiseFees(offered, now)).to.deep.equal(replacement);
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
      const reverted = receipt({ status: '0x0', logs: [] });
      expect(judgeReceipts([receipt({ logs: [others[0]!] }), reverted], registry, tokenId)).to.include({
        state: 'reverted',
      });
      expect(judgeReceipts([], registry, tokenId)).to.deep.equal({ state: 'none' });
    });

    it('is "none" while the node gives a receipt of a transaction that is not mined', async () => {
      const pending = { ...receipt({ logs: [] }), status: null, blockHash: null, blockNumber: null };
      const chain = new MintNode(
        chainOf(async () => pending),
        registry,
        () => Promise.resolve(0),
      );
      const [mint, transaction] = [{ issuance: { tokenId } } as Mint, { hash: '0x01' } as SignedMint];
      expect(await chain.verdictOn(mint, [transaction])).to.deep.equal({ state: 'none' });
    });

    it('is looked for in all blocks, also where the node gives logs of ten at once', async () => {
      const mintLog = {
        ...log,
        ...block,
        transactionHash: '0x1',
        transactionIndex: '0x0',
        logIndex: '0x0',
        data: '0x',
      };
      const tooWide = Object.assign(new Error(), { error: { code: -32_000, message: 'ten blocks' } });
      const chain = new MintNode(
        chainOf(async (method, [first]) => {
          if (method === 'eth_blockNumber') return '0x64';
          if (method === 'eth_call') return `0x${'0'.repeat(63)}1`;
          const { fromBlock, toBlock } = first as { fromBlock: string; toBlock: string };
          if (Number(toBlock) - Number(fromBlock) >= 10) throw tooWide;
          return Number(fromBlock) <= 7 && Number(toBlock) >= 7 ? [mintLog] : [];
        }),
        registry,
        () => Promise.resolve(0),
      );
      expect(
        await chain.findMint({ tokenId, transactions: [], issuance: { tokenId } } as unknown as Mint),
      ).to.deep.equal(mined);
    });
  });
});
