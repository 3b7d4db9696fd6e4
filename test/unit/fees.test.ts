import { expect } from 'chai';
import { FeeData } from 'ethers';
import { highestGasPrice, readFees, type FeeReading } from '../../service/chain/transactions';

const STATION = { maxFeePerGas: 40n, maxPriorityFeePerGas: 30n };
const WITH_BASE_FEE = new FeeData(7n, 20n, 2n);
const WITHOUT_BASE_FEE = new FeeData(7n, null, null);

describe('the fees of a transaction', () => {
  const warnings: string[] = [];
  const reading = (parts: Partial<FeeReading>): FeeReading => ({
    gasPricing: 'eip-1559',
    readStation: undefined,
    readNode: async () => WITH_BASE_FEE,
    warn: (message) => void warnings.push(message),
    ...parts,
  });

  beforeEach(() => void (warnings.length = 0));

  it('come from the gas station if there is one', async () => {
    const fees = await readFees(reading({ readStation: async () => STATION }));
    expect(fees).to.deep.equal({ type: 2, ...STATION });
    expect(highestGasPrice(fees)).to.equal(40n);
  });

  it("are the node's estimate when the gas station fails, with a warning", async () => {
    const fees = await readFees(reading({ readStation: () => Promise.reject(new Error('down')) }));
    expect(fees).to.deep.equal({ type: 2, maxFeePerGas: 20n, maxPriorityFeePerGas: 2n });
    expect(warnings.join()).to.contain('gas station');
  });

  it("are the node's estimate without a gas station, with no warning", async () => {
    expect(await readFees(reading({}))).to.have.property('maxFeePerGas', 20n);
    expect(warnings).to.deep.equal([]);
  });

  it('are a gas price if the node has no base fee, even on an EIP-1559 network', async () => {
    const fees = await readFees(reading({ readNode: async () => WITHOUT_BASE_FEE }));
    expect(fees).to.deep.equal({ type: 0, gasPrice: 7n });
    expect(highestGasPrice(fees)).to.equal(7n);
  });

  it('are a gas price on a legacy network, even with a base fee and a gas station', async () => {
    const fees = await readFees(reading({ gasPricing: 'legacy', readStation: async () => STATION }));
    expect(fees).to.deep.equal({ type: 0, gasPrice: 7n });
  });

  it('are zero on a free network, without asking the gas station or the node', async () => {
    const nobody = (): never => expect.fail('asked');
    const fees = await readFees(reading({ gasPricing: 'free', readStation: nobody, readNode: nobody }));
    expect(fees).to.deep.equal({ type: 0, gasPrice: 0n });
  });

  it('are unknown when the node reports none, which is a retryable error', async () => {
    const failure = await readFees(
      reading({ gasPricing: 'legacy', readNode: async () => new FeeData(null, null, null) }),
    ).catch((error: unknown) => error);
    expect(failure).to.include({ code: 'FEES_UNKNOWN', retryable: true });
  });
});
