import { utils } from '@tradetrust-tt/token-registry';
import { expect } from 'chai';
import { formatEther, parseUnits, type TransactionResponse } from 'ethers';
import { gasLimitFor } from '../../cli/transactions';
import { TDocDeployer__factory } from '../../typechain-types';
import { startFakeGasStation, type FakeGasStation } from '../helpers/chain/fake-gas-station';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

const FEES = { maxFee: 61.000000007, maxPriorityFee: 30.5 };
const MAX_FEE = 61_000_000_007n;
const PRIORITY_FEE = 30_500_000_000n;

describe('npx hardhat deploy on Amoy', () => {
  let amoy: StandInNetwork;
  let station: FakeGasStation;

  before(async () => {
    amoy = await startStandInNetwork('amoy');
    station = await startFakeGasStation();
  });
  beforeEach(() => station.tell(FEES));
  after(async () => {
    await station.close();
    await amoy.stop();
  });

  const deploy = (...args: string[]): Promise<CommandAnswer> =>
    amoy.deploy(args, { GAS_STATION_URL: station.url });

  /** The last transaction of the chain. Each is mined in a block of its own. */
  async function lastTransaction(): Promise<TransactionResponse> {
    const block = await amoy.chain.getBlock('latest', true);
    return block?.prefetchedTransactions[0] as TransactionResponse;
  }

  /** The highest cost of the deploy transaction, calculated without the command. */
  async function highestCost(): Promise<bigint> {
    const { deployer, tokenImplementation } = amoy.published;
    const names = { name: 'Transferable Documents', symbol: 'TDOC', deployer: amoy.wallet.address };
    const parameters = utils.encodeInitParams(names) as string;
    const gas = await TDocDeployer__factory.connect(deployer, amoy.chain).deploy.estimateGas(
      tokenImplementation,
      parameters,
      { from: amoy.wallet.address },
    );
    return gasLimitFor(gas) * MAX_FEE;
  }

  it('names the exact amount that is missing, and sends nothing', async () => {
    const needed = await highestCost();
    const block = await amoy.chain.getBlockNumber();
    for (const balance of [0n, needed - 1n]) {
      await amoy.fund(balance);
      const { code, stdout, stderr } = await deploy();
      expect(code, stdout).to.equal(1);
      expect(stderr).to.contain('WALLET_NOT_FUNDED').and.to.contain(amoy.wallet.address);
      expect(stderr).to.contain(`up to ${formatEther(needed)} POL are needed`);
      expect(stderr).to.contain(`${formatEther(needed - balance).replace(/\.0$/, '')} POL are missing`);
      expect(stderr).not.to.match(/\n +at /);
    }
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(0);
    expect(await amoy.chain.getBlockNumber()).to.equal(block);
    expect(amoy.registry()).to.equal('');
  });

  it('prints wallet, balance and cost, and offers the fees of the gas station', async () => {
    const needed = await highestCost();
    await amoy.fund(needed);
    const asked = station.asked();
    const { code, stdout, stderr } = await deploy();
    expect(code, stderr).to.equal(0);
    expect(stdout).to.contain(`wallet   ${amoy.wallet.address}`);
    expect(stdout).to.contain(`balance  ${formatEther(needed)} POL`);
    expect(stdout).to.contain(`cost     at most ${formatEther(needed)} POL`);
    expect(stdout.indexOf('cost ')).to.be.lessThan(stdout.indexOf('Deploying the registry'));
    const { type, maxFeePerGas, maxPriorityFeePerGas, gasLimit, from } = await lastTransaction();
    expect({ type, maxFeePerGas, maxPriorityFeePerGas, from }).to.deep.equal({
      type: 2,
      maxFeePerGas: MAX_FEE,
      maxPriorityFeePerGas: PRIORITY_FEE,
      from: amoy.wallet.address,
    });
    expect(gasLimit * MAX_FEE).to.equal(needed);
    expect(station.asked(), 'what is printed is what is offered').to.equal(asked + 1);
  });

  it('links to the registry and to a sent transaction; needs no funds when nothing is sent', async () => {
    const { hash } = await lastTransaction();
    await amoy.fund(0n);
    const { code, stdout } = await deploy();
    expect(code).to.equal(0);
    expect(stdout).to.contain(`https://amoy.polygonscan.com/address/${amoy.registry()}`);
    expect(stdout).not.to.contain('cost ').and.not.to.contain('/tx/');
    await amoy.fund(parseUnits('1', 'ether'));
    const again = await deploy('--new');
    const { hash: newest } = await lastTransaction();
    expect(newest).not.to.equal(hash);
    expect(again.stdout).to.contain(`https://amoy.polygonscan.com/tx/${newest}`);
    expect(again.stdout).to.contain(`https://amoy.polygonscan.com/address/${amoy.registry()}`);
  });

  it('uses the node’s estimate when the gas station fails, and warns', async () => {
    station.fail();
    const { code, stderr } = await deploy('--new');
    expect(code, stderr).to.equal(0);
    expect(stderr).to.contain('warning: The gas station gives no usable fees');
    const { type, maxFeePerGas, maxPriorityFeePerGas, blockNumber } = await lastTransaction();
    const before = await amoy.chain.getBlock((blockNumber ?? 1) - 1);
    expect(type).to.equal(2);
    expect(maxFeePerGas).to.equal(2n * (before?.baseFeePerGas ?? 0n) + (maxPriorityFeePerGas ?? 0n));
  });

  it('uses the published contracts even with --with-infrastructure, and says so', async () => {
    const count = await amoy.chain.getTransactionCount(amoy.wallet.address);
    const { code, stdout } = await deploy('--new', '--with-infrastructure');
    expect(code).to.equal(0);
    expect(stdout).to.contain('The contracts published on amoy are used');
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(count + 1);
  });
});
