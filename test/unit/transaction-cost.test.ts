import { expect } from 'chai';
import {
  costLines,
  gasLimitFor,
  highestCost,
  requireFunds,
  type TransactionCost,
} from '../../cli/transactions';
import { findNetwork, type Network } from '../../service/chain/networks';
import { ConfigurationError } from '../../service/base/errors';

const amoy = findNetwork('amoy') as Network;
const stability = findNetwork('stability') as Network;

const COST: TransactionCost = {
  account: '0xAbC',
  balance: 1_500_000_000_000_000n,
  gas: 100_001n,
  fees: { type: 2, maxFeePerGas: 30_000_000_001n, maxPriorityFeePerGas: 30_000_000_000n },
};

/** 120,001 gas at 30.000000001 gwei. */
const HIGHEST = 3_600_030_000_120_001n;

describe('the cost of a transaction', () => {
  const problemOf = (cost: TransactionCost, network: Network): unknown => {
    try {
      return requireFunds(cost, network);
    } catch (thrown) {
      return thrown;
    }
  };

  it('has a gas limit a fifth above the estimate', () => {
    expect(gasLimitFor(100_001n)).to.equal(120_001n);
    expect(gasLimitFor(0n)).to.equal(0n);
  });

  it('is the whole gas limit at the maximum fee, which includes the priority fee', () => {
    expect(highestCost(COST)).to.equal(HIGHEST);
    expect(highestCost({ ...COST, fees: { type: 0, gasPrice: 7n } })).to.equal(120_001n * 7n);
  });

  it('is printed exactly, in the currency of the network', () => {
    expect(costLines(COST, amoy)).to.deep.equal([
      'wallet   0xAbC',
      'balance  0.0015 POL',
      'cost     at most 0.003600030000120001 POL (about 100001 gas at up to 30.000000001 gwei)',
    ]);
  });

  it('can be paid with exactly that balance, but not with one wei less', () => {
    expect(problemOf({ ...COST, balance: HIGHEST }, amoy)).to.equal(undefined);
    const problem = problemOf({ ...COST, balance: HIGHEST - 1n }, amoy);
    expect(problem).to.be.instanceOf(ConfigurationError).and.include({ code: 'WALLET_NOT_FUNDED' });
    expect(String(problem)).to.contain('0.000000000000000001 POL are missing').and.to.contain('0xAbC');
    expect(problem).to.have.property('remedy').that.contains('Nothing was sent');
  });

  it('is zero where gas is free, so that an empty wallet can pay it', () => {
    const free: TransactionCost = { ...COST, balance: 0n, fees: { type: 0, gasPrice: 0n } };
    expect(problemOf(free, stability)).to.equal(undefined);
    expect(costLines(free, stability).slice(1)).to.deep.equal([
      'balance  0 FREE',
      'cost     at most 0 FREE (about 100001 gas at up to 0 gwei)',
    ]);
  });
});
