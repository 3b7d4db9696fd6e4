import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { AbiCoder, formatEther, isHexString, parseEther } from 'ethers';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { TDocDeployer__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { createFakeExplorer, type FakeExplorer } from '../helpers/chain/fake-explorer';
import { ask, askHardhat } from '../helpers/processes/command-answer';
import { askHardhatInProcess } from '../helpers/processes/hardhat-in-process';
import { hasOpenssl, startHttpsFront, type HttpsFront } from '../helpers/processes/https-front';
import { runAsWritten } from '../helpers/pages/page-commands';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';
import { temporaryFolder } from '../helpers/temporary-folder';

const EXPLORER_KEY = 'MARKEDKEYOFETHERSCAN0123456789ABCD';

/** Runs `verify` in one process, with the options of each of these commands. */
const verifyAll = (commands: readonly string[]): string => {
  const options = commands.map((command) => /--contract (\S+) (\S+)$/.exec(command));
  return `
const hre = require(${JSON.stringify(join(PROJECT_ROOT, 'node_modules/hardhat'))});
const verify = ([, contract, address]) => hre.run('verify', { contract, address });
Promise.all(${JSON.stringify(options)}.map(verify));
`;
};

// A node with Amoy's chain id that has nothing at the addresses where v5 is published.
describe('npx hardhat deploy on a network without the published contracts', () => {
  let network: StandInNetwork;
  /** The commands that were printed to be run next. */
  let printed: string[];

  before(async () => {
    network = await startStandInNetwork('amoy', { isPublished: false });
  });
  after(() => network.stop());

  const transactions = (): Promise<number> => network.chain.getTransactionCount(network.wallet.address);

  it('sends nothing, and names the missing deployer and --with-infrastructure', async () => {
    await network.fund(parseEther('1'));
    const { code, stdout, stderr } = await network.deploy();
    expect(code, stdout).to.equal(1);
    expect(stderr).to.contain('INFRASTRUCTURE_MISSING').and.to.contain(network.published.deployer);
    expect(stderr).to.contain('--with-infrastructure');
    expect(stderr).not.to.match(/\n +at /);
    expect(await transactions()).to.equal(0);
  });

  it('sends nothing with --with-infrastructure if the wallet cannot pay for all of it', async () => {
    await network.fund(1n);
    const { code, stderr } = await network.deploy(['--with-infrastructure']);
    expect(code).to.equal(1);
    expect(stderr).to.contain('WALLET_NOT_FUNDED');
    expect(await transactions()).to.equal(0);
    const missing = /: (\S+) POL are missing/.exec(stderr)?.[1] ?? '';
    await network.fund(1n + parseEther(missing));
  });

  it('installs everything with --with-infrastructure within the printed cost', async () => {
    const balance = await network.chain.getBalance(network.wallet.address);
    const { code, stdout, stderr } = await network.deploy(['--with-infrastructure']);
    expect(code, stderr).to.equal(0);
    expect(stdout)
      .to.contain(`cost     at most ${formatEther(balance)} POL`)
      .and.to.contain('This is an estimate');
    printed = stdout.match(/(?<=^ +)ENV_FILE=.* verify .*$/gm) ?? [];
    expect(printed).to.have.length(5);
    const registry = TradeTrustTokenStandard__factory.connect(network.registry(), network.chain);
    const [factory = '', implementation = '', deployer = ''] =
      stdout.match(/0x\w{40}(?= +deployed$)/gm) ?? [];
    expect(deployer).not.to.equal(network.published.deployer);
    const block = await network.chain.getBlock('latest');
    await expect(block?.transactions[0])
      .to.emit(TDocDeployer__factory.connect(deployer, network.chain), 'Deployment')
      .withArgs(network.registry(), implementation, network.wallet.address, factory, isHexString);
    expect(await registry.hasRole(await registry.MINTER_ROLE(), network.wallet.address)).to.equal(true);
    expect(await transactions()).to.equal(6);
  });

  it('sends only the registry, without the flag, when the infrastructure exists', async () => {
    await network.fund(parseEther('1'));
    const { code, stdout, stderr } = await network.deploy(['--new']);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.match(/deployer +0x\w{40} +already there/);
    for (const command of printed) expect(stdout).to.contain(command);
    expect(await transactions()).to.equal(7);
  });

  (hasOpenssl ? describe : describe.skip)('the npx hardhat verify commands that it prints', () => {
    const folder = temporaryFolder();
    let explorer: FakeExplorer;
    let https: HttpsFront;
    let settings: Record<string, string>;

    before(async () => {
      explorer = createFakeExplorer(network.chain, 80002, EXPLORER_KEY);
      https = await startHttpsFront(folder.path, { 'api.etherscan.io': explorer.answer });
      const { envFile: ENV_FILE, node } = network;
      settings = { ENV_FILE, RPC_URL: node.url, ETHERSCAN_API_KEY: EXPLORER_KEY, ...https.environment };
    });
    after(async () => {
      await https.close();
      folder.remove();
    });

    it('submit the source of the proxy and its constructor arguments to the explorer', async () => {
      const output = await runAsWritten(printed.at(-1) ?? '', settings);
      const [proxy] = explorer.submissions;
      expect(output).to.contain(`https://amoy.polygonscan.com/address/${proxy?.address}#code`);
      const logic = printed.at(-2)?.split(' ').at(-1);
      const args = AbiCoder.defaultAbiCoder().encode(['address', 'bytes'], [logic, '0x8129fc1c']);
      expect(proxy?.args).to.equal(args.slice(2));
    });

    it('submit the source of every contract, which compiles to the deployed code', async () => {
      // In one process: each start of a command costs seconds.
      const script = join(folder.path, 'verify-all.js');
      writeFileSync(script, verifyAll(printed.slice(0, -1)));
      // As `hardhat run` starts a script, without loading Hardhat twice.
      const args = ['hardhat/register', script];
      const { code, stdout, stderr } = await ask('--require', args, { ...settings, HARDHAT_NETWORK: 'amoy' });
      expect(code, stdout + stderr).to.equal(0);
      const { submissions } = explorer;
      expect(submissions.map(({ contract }) => contract.replace(/.*:/, ''))).to.have.members([
        'ERC1967Proxy',
        'TitleEscrowFactory',
        'TitleEscrow',
        'TradeTrustTokenStandard',
        'TDocDeployer',
      ]);
      for (const { contract, compiler, input } of submissions) {
        const { optimizer, evmVersion } = input.settings;
        expect({ compiler, optimizer, evmVersion }, contract).to.deep.equal({
          compiler: 'v0.8.22+commit.4fc1097e',
          optimizer: { enabled: false, runs: 200 },
          evmVersion: 'paris',
        });
      }
      expect(stdout.match(/Successfully verified/g)).to.have.length(printed.length - 1);
    });

    it('name the wrong setting when the key is refused or the node does not answer', async () => {
      const args =
        printed
          .at(-1)
          ?.replace(/^.* hardhat /, '')
          .split(' ') ?? [];
      const otherKey = { ...settings, ETHERSCAN_API_KEY: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ01234567' };
      const refused = await askHardhat(args, otherKey);
      const unreachable = await askHardhatInProcess(args, { ...settings, RPC_URL: 'http://127.0.0.1:9' });
      expect(refused.stderr).to.contain('ETHERSCAN_API_KEY is refused').and.to.contain('[NOT_CONFIGURED]');
      expect(unreachable.stderr).to.contain('[RPC_UNREACHABLE]').and.to.contain('Check RPC_URL');
      expect([refused.code, unreachable.code]).to.deep.equal([1, 1]);
    });

    it('mask the key in the URL when the explorer fails', async () => {
      explorer.fail();
      const failed = await askHardhat(['verify', '--network', 'amoy', network.registry()], settings);
      expect(failed.code).to.equal(1);
      expect(failed.stderr).to.contain('apikey=[secret]');
      expect(inspect(failed)).not.to.contain(EXPLORER_KEY);
    });
  });
});
