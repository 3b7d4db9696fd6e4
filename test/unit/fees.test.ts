import { expect } from 'chai';
import { FeeData, parseUnits, ZeroAddress } from 'ethers';
import { systemTime } from '../../service/base/time';
import {
  estimateFees,
  highestGasPrice,
  namedTip,
  readFees,
  type FeeEstimate,
  type FeeReading,
  type TransactionFees,
} from '../../service/chain/transactions';
import type { MintQueueOptions } from '../../service/minting/mint';
import { TransactionTerms } from '../../service/minting/transaction-terms';
import { chainOf } from '../helpers/chain/fake-nodes';
import { errorOf } from '../helpers/error-of';

const reading = (parts: Partial<FeeReading>): FeeReading => ({
  gasPricing: 'eip-1559',
  leastGwei: undefined,
  readStation: undefined,
  readNode: async () => WITH_BASE_FEE,
  warn: () => undefined,
  ...parts,
});

const STATION = { maxFeePerGas: 40n, maxPriorityFeePerGas: 30n };
const WITH_BASE_FEE = new FeeData(7n, 20n, 2n);
const WITHOUT_BASE_FEE = new FeeData(7n, null, null);

const LEGACY = { type: 0, gasPrice: 7n } as const;
const nobody = (): never => expect.fail('asked');

describe('the fees of a transaction', () => {
  for (const [what, parts, fees, warned] of [
    ['of the gas station if there is one', { readStation: async () => STATION }, { type: 2, ...STATION }],
    [
      "of the node's estimate when the gas station fails, with a warning",
      { readStation: () => Promise.reject(new Error('down')) },
      { type: 2, maxFeePerGas: 20n, maxPriorityFeePerGas: 2n },
      'gas station',
    ],
    [
      "of the node's estimate without a station",
      {},
      { type: 2, maxFeePerGas: 20n, maxPriorityFeePerGas: 2n },
    ],
    ['a gas price if the node has no base fee', { readNode: async () => WITHOUT_BASE_FEE }, LEGACY],
    ['a gas price on a legacy network', { gasPricing: 'legacy', readStation: async () => STATION }, LEGACY],
    [
      'zero on a free network, without a question',
      { gasPricing: 'free', readStation: nobody, readNode: nobody },
      { type: 0, gasPrice: 0n },
    ],
  ] as [string, Partial<FeeReading>, TransactionFees, string?][])
    it(`are ${what}`, async () => {
      const warnings: string[] = [];
      const read = await readFees(reading({ warn: (message) => void warnings.push(message), ...parts }));
      expect(read).to.deep.equal(fees);
      expect(highestGasPrice(read)).to.equal(fees.type === 2 ? fees.maxFeePerGas : fees.gasPrice);
      expect(warnings.join()).to.match(warned === undefined ? /^$/ : new RegExp(warned));
    });

  it('are at least those of LEAST_PRIORITY_FEE_GWEI, whoever gives them', async () => {
    const least = { leastGwei: 25 };
    const tip = 25_000_000_000n;
    expect(await readFees(reading(least))).to.deep.equal({
      type: 2,
      maxFeePerGas: tip + 18n,
      maxPriorityFeePerGas: tip,
    });
    expect(await readFees(reading({ ...least, readStation: async () => STATION }))).to.include({
      maxPriorityFeePerGas: tip,
    });
    const legacy = reading({ ...least, readNode: async () => WITHOUT_BASE_FEE });
    expect(await readFees(legacy)).to.deep.equal({ type: 0, gasPrice: tip });
    expect(await readFees(reading({ ...least, gasPricing: 'free' }))).to.deep.equal({
      type: 0,
      gasPrice: 0n,
    });
  });

  for (const [refusal, tip] of [
    ['transaction gas price below minimum: gas tip cap 1000000000, minimum needed 25000000000', 25],
    ['transaction underpriced: tip needed 30000000000, tip permitted 1000000000', 30],
    ['FeeTooLow, EffectivePriorityFeePerGas too low 1000000000 < 31000000000, BaseFee: 7', 31],
    ['gas price must be at least 27.5 gwei', 27.5],
    ['max priority fee per gas is below the minimum of 26 Gwei', 26],
    ['gas price too low: it must be at least 25,000,000,000 wei', 25],
    ['gas price: min 30,000,000,001, got 1', 30.000000001],
    ['tip too low: at least 26000000000,123456789', 26],
    ['Gas price below configured minimum gas price', 0],
    ['max fee per gas less than block base fee: address 0x12, maxFeePerGas: 1, baseFee: 7', 0],
    ['transaction underpriced: tip needed 99000000000000, tip permitted 1', 0],
    ['nonce too low: next nonce 7, at least 8 needed', 0],
  ] as const)
    it(`names ${tip} gwei by "${refusal}"`, () =>
      expect(namedTip(refusal)).to.equal(parseUnits(String(tip), 'gwei')));

  it('are raised for an hour to the priority fee that a refusal names', async () => {
    let now = 1_000_000;
    const terms = new TransactionTerms({
      registryAddress: ZeroAddress,
      network: { blockTimeMs: 2_000 },
      readFees: () => readFees(reading({})),
      time: { ...systemTime, elapsed: () => now },
    } as MintQueueOptions);
    const tip = async (): Promise<unknown> => {
      const fees = await terms.fees();
      return fees.type === 2 && fees.maxPriorityFeePerGas;
    };
    terms.forgetFees('transaction underpriced: tip needed 90000000000, tip permitted 1000000000');
    now += 59 * 60_000;
    expect(await tip()).to.equal(90_000_000_000n);
    terms.forgetFees('replacement transaction underpriced');
    now += 60_000;
    expect(await tip()).to.equal(2n);
    terms.forgetFees('transaction underpriced: tip needed 30000000000, tip permitted 1000000000');
    expect(await tip()).to.equal(30_000_000_000n);
  });

  it('are unknown when the node reports none, which is a retryable error', async () => {
    const none = reading({ gasPricing: 'legacy', readNode: async () => new FeeData(null, null, null) });
    expect(await errorOf(readFees(none))).to.include({ code: 'FEES_UNKNOWN', retryable: true });
  });

  for (const [what, answers, expected] of [
    [
      'with room for a base fee that doubles',
      { baseFeePerGas: '0x64', eth_gasPrice: '0x7', eth_maxPriorityFeePerGas: '0x2' },
      { gasPrice: 7n, maxFeePerGas: 202n, maxPriorityFeePerGas: 2n },
    ],
    [
      'with a priority fee of 1 gwei if the node suggests none',
      { baseFeePerGas: '0x64', eth_gasPrice: '0x7' },
      { gasPrice: 7n, maxFeePerGas: 1_000_000_200n, maxPriorityFeePerGas: 1_000_000_000n },
    ],
    [
      'by the gas price alone if there is no base fee, or it is 0',
      { baseFeePerGas: '0x0', eth_gasPrice: '0x7', eth_maxPriorityFeePerGas: '0x2' },
      { gasPrice: 7n, maxFeePerGas: null, maxPriorityFeePerGas: null },
    ],
    [
      'not at all if the node refuses',
      {},
      { gasPrice: null, maxFeePerGas: null, maxPriorityFeePerGas: null },
    ],
  ] as [string, Record<string, string>, FeeEstimate][])
    it(`are estimated ${what}`, async () => {
      const { baseFeePerGas } = answers;
      const chain = chainOf(async (method) => {
        if (method === 'eth_getBlockByNumber') return { number: '0x1', baseFeePerGas };
        return answers[method] ?? Promise.reject(new Error(`there is no method ${method}`));
      });
      expect(await estimateFees(chain)).to.deep.equal(expected);
    });
});
