import { expect } from 'chai';
import { FeeData } from 'ethers';
import { highestGasPrice, readFees, type FeeReading } from '../../service/chain/fees';

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

  it("are the gas station's where there is one", async () => {
    const fees = await readFees(reading({ readStation: async () => STATION }));
    expect(fees).to.deep.equal({ type: 2, ...STATION });
    expect(highestGasPrice(fees)).to.equal(40n);
  });

  it("are the node's estimate when the station fails, which is told", async () => {
    const fees = await readFees(reading({ readStation: () => Promise.reject(new Error('down')) }));
    expect(fees).to.deep.equal({ type: 2, maxFeePerGas: 20n, maxPriorityFeePerGas: 2n });
    expect(warnings.join()).to.contain('gas station');
  });

  it("are the node's estimate where there is no station, and nothing is told", async () => {
    expect(await readFees(reading({}))).to.have.property('maxFeePerGas', 20n);
    expect(warnings).to.deep.equal([]);
  });

  it('are a gas price where the node has no base fee, whatever the network is said to be', async () => {
    const fees = await readFees(reading({ readNode: async () => WITHOUT_BASE_FEE }));
    expect(fees).to.deep.equal({ type: 0, gasPrice: 7n });
    expect(highestGasPrice(fees)).to.equal(7n);
  });

  it('are a gas price on a legacy network, although the node has a base fee and somebody a station', async () => {
    const fees = await readFees(reading({ gasPricing: 'legacy', readStation: async () => STATION }));
    expect(fees).to.deep.equal({ type: 0, gasPrice: 7n });
  });

  it('are nothing on a free network, and nobody is asked', async () => {
    const nobody = (): never => expect.fail('asked');
    const fees = await readFees(reading({ gasPricing: 'free', readStation: nobody, readNode: nobody }));
    expect(fees).to.deep.equal({ type: 0, gasPrice: 0n });
  });

  it('are not known when the node does not tell any: the caller may try again', async () => {
    const failure = await readFees(
      reading({ gasPricing: 'legacy', readNode: async () => new FeeData(null, null, null) }),
    ).catch((error: unknown) => error);
    expect(failure).to.include({ code: 'FEES_UNKNOWN', retryable: true });
  });
});
