import { expect } from 'chai';
import { parseEther, type TransactionResponse } from 'ethers';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

describe('npx hardhat deploy on a network without EIP-1559', () => {
  let network: StandInNetwork;

  async function lastTransaction(): Promise<TransactionResponse> {
    const block = await network.chain.getBlock('latest', true);
    return block?.prefetchedTransactions[0] as TransactionResponse;
  }

  describe('where gas is free (Stability)', () => {
    before(async () => {
      network = await startStandInNetwork('stability', { legacyGas: true });
    });
    after(() => network.stop());

    it('offers a gas price of 0 from an empty wallet', async () => {
      const { code, stdout, stderr } = await network.deploy();
      expect(code, stderr).to.equal(0);
      expect(stdout).to.contain('balance  0 FREE').and.to.contain('at most 0 FREE');
      const { type, gasPrice, from, hash } = await lastTransaction();
      expect({ type, gasPrice, from }).to.deep.equal({ type: 0, gasPrice: 0n, from: network.wallet.address });
      expect(stdout).to.contain(`https://stability.blockscout.com/tx/${hash}`);
    });
  });

  describe('where gas has one price (XDC)', () => {
    before(async () => {
      network = await startStandInNetwork('xdc', { legacyGas: true });
    });
    after(() => network.stop());

    it('offers the gas price of the node', async () => {
      await network.fund(parseEther('1'));
      const { code, stderr } = await network.deploy();
      expect(code, stderr).to.equal(0);
      const { type, gasPrice } = await lastTransaction();
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
});
