import { expect } from 'chai';
import { FeeData } from 'ethers';
import {
  highestGasPrice,
  readFees,
  type FeeReading,
  type TransactionFees,
} from '../../service/chain/transactions';
import { errorOf } from '../helpers/error-of';

const reading = (parts: Partial<FeeReading>): FeeReading => ({
  gasPricing: 'eip-1559',
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

  it('are unknown when the node reports none, which is a retryable error', async () => {
    const none = reading({ gasPricing: 'legacy', readNode: async () => new FeeData(null, null, null) });
    expect(await errorOf(readFees(none))).to.include({ code: 'FEES_UNKNOWN', retryable: true });
  });
});
