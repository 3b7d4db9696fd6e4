import { expect } from 'chai';
import { formatEther, parseEther } from 'ethers';
import { TDocDeployer__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { startStandInNetwork, type StandInNetwork } from '../helpers/stand-in-network';

// A node with Amoy's chain id that has nothing at the addresses where v5 is published.
describe('npx hardhat deploy where the published contracts are not', () => {
  let network: StandInNetwork;

  before(async () => {
    network = await startStandInNetwork('amoy', { isPublished: false });
  });
  after(() => network.stop());

  const transactions = (): Promise<number> => network.chain.getTransactionCount(network.wallet.address);

  it('stops, says so and names the flag', async () => {
    await network.fund(parseEther('1'));
    const { code, stdout, stderr } = await network.deploy();
    expect(code, stdout).to.equal(1);
    expect(stderr).to.contain('INFRASTRUCTURE_MISSING').and.to.contain(network.published.deployer);
    expect(stderr).to.contain('--with-infrastructure');
    expect(stderr).not.to.match(/\n +at /);
    expect(await transactions()).to.equal(0);
  });

  it('sends nothing with the flag either, when the wallet cannot pay for all of it', async () => {
    await network.fund(1n);
    const { code, stderr } = await network.deploy(['--with-infrastructure']);
    expect(code).to.equal(1);
    expect(stderr).to.contain('WALLET_NOT_FUNDED');
    expect(await transactions()).to.equal(0);
    const missing = /: (\S+) POL are missing/.exec(stderr)?.[1] ?? '';
    await network.fund(1n + parseEther(missing));
  });

  it('installs everything with the flag, for no more than was announced', async () => {
    const balance = await network.chain.getBalance(network.wallet.address);
    const { code, stdout, stderr } = await network.deploy(['--with-infrastructure']);
    expect(code, stderr).to.equal(0);
    expect(stdout)
      .to.contain(`cost     at most ${formatEther(balance)} POL`)
      .and.to.contain('This is an estimate');
    const [, deployer = ''] = /deployer +(0x\w{40}) +deployed/.exec(stdout) ?? [];
    expect(deployer).not.to.equal(network.published.deployer);
    const registry = TradeTrustTokenStandard__factory.connect(network.registry(), network.chain);
    const logs = await network.chain.getLogs({ address: deployer, fromBlock: 0 });
    const deployment = logs
      .flatMap((log) => TDocDeployer__factory.createInterface().parseLog(log) ?? [])
      .at(-1);
    expect(deployment?.name).to.equal('Deployment');
    expect(deployment?.args.deployed).to.equal(network.registry());
    expect(await registry.hasRole(await registry.MINTER_ROLE(), network.wallet.address)).to.equal(true);
    expect(await transactions()).to.equal(6);
  });

  it('needs no flag for what is there, and sends only the registry', async () => {
    await network.fund(parseEther('1'));
    const { code, stdout, stderr } = await network.deploy(['--new']);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.match(/deployer +0x\w{40} +already there/);
    expect(await transactions()).to.equal(7);
  });
});
