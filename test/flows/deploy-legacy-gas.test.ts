import { expect } from 'chai';
import { parseEther } from 'ethers';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

describe('npx hardhat deploy on a network without EIP-1559 (XDC)', () => {
  let network: StandInNetwork;

  before(async () => {
    network = await startStandInNetwork('xdc', { legacyGas: true });
  });
  after(() => network.stop());

  it('offers the gas price of the node', async () => {
    await network.fund(parseEther('1'));
    const { code, stderr } = await network.deploy();
    expect(code, stderr).to.equal(0);
    const block = await network.chain.getBlock('latest', true);
    const { type, gasPrice } = block?.prefetchedTransactions[0] ?? {};
    expect({ type, gasPrice }).to.deep.equal({
      type: 0,
      gasPrice: BigInt((await network.chain.send('eth_gasPrice', [])) as string),
    });
  });

  it('refuses an empty wallet', async () => {
    await network.fund(0n);
    const { code, stderr } = await network.deploy(['--new']);
    expect(code).to.equal(1);
    expect(stderr).to.contain('WALLET_NOT_FUNDED').and.to.contain(' XDC are missing');
  });
});
