import { inspect } from 'node:util';
import { setMockDispatcher } from '@nomicfoundation/hardhat-verify/internal/undici';
import { expect } from 'chai';
import { AbiCoder, formatEther, isHexString, parseEther } from 'ethers';
import { MockAgent } from 'undici';
import { TDocDeployer__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { askAsWritten } from '../helpers/pages/page-commands';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

const EXPLORER_KEY = 'MARKEDKEYOFETHERSCAN0123456789ABCD';
const OTHER_KEY = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ01234567';

// A node with Amoy's chain id that has nothing at the addresses where v5 is published.
describe('npx hardhat deploy on a network without the published contracts', () => {
  let network: StandInNetwork;
  /** The commands that were printed to be run next. */
  let printed: string[];

  before(async () => {
    network = await startStandInNetwork('amoy', { isPublished: false });
  });

  const transactions = (): Promise<number> => network.chain.getTransactionCount(network.wallet.address);

  it('sends nothing, and names the missing deployer and --with-infrastructure', async () => {
    await network.fund(parseEther('1'));
    const refusal = await network.refuse();
    expect(refusal).to.contain('INFRASTRUCTURE_MISSING').and.to.contain(network.published.deployer);
    expect(refusal)
      .to.contain('--with-infrastructure')
      .and.not.to.match(/\n +at /);
    expect(await transactions()).to.equal(0);
  });

  it('sends nothing with --with-infrastructure if the wallet cannot pay for all of it', async () => {
    await network.fund(1n);
    const refusal = await network.refuse(['--with-infrastructure']);
    expect(refusal).to.contain('WALLET_NOT_FUNDED');
    expect(await transactions()).to.equal(0);
    const missing = /: (\S+) POL are missing/.exec(refusal)?.[1] ?? '';
    await network.fund(1n + parseEther(missing));
  });

  it('installs everything with --with-infrastructure within the printed cost', async () => {
    const balance = await network.chain.getBalance(network.wallet.address);
    const output = await network.deploy(['--with-infrastructure']);
    expect(output)
      .to.contain(`cost     at most ${formatEther(balance)} POL`)
      .and.to.contain('This is an estimate');
    printed = output.match(/(?<=^ +)ENV_FILE=.* verify .*$/gm) ?? [];
    expect(printed).to.have.length(5);
    const registry = TradeTrustTokenStandard__factory.connect(network.registry(), network.chain);
    const [factory = '', implementation = '', deployer = ''] =
      output.match(/0x\w{40}(?= +deployed$)/gm) ?? [];
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
    const output = await network.deploy(['--new']);
    expect(output).to.match(/deployer +0x\w{40} +already there/);
    for (const command of printed) expect(output).to.contain(command);
    expect(await transactions()).to.equal(7);
  });

  describe('the npx hardhat verify commands that it prints', () => {
    const submissions: URLSearchParams[] = [];
    let explorerStatus = 200;
    let settings: Record<string, string>;

    before(() => {
      const explorer = new MockAgent();
      explorer.disableNetConnect();
      explorer
        .get('https://api.etherscan.io')
        .intercept({ path: () => true, method: () => true })
        .reply(({ path, body }) => {
          const form = new URLSearchParams(typeof body === 'string' ? body : '');
          const asked = new Map([...new URLSearchParams(path.split('?')[1]), ...form]);
          if (asked.get('action') === 'verifysourcecode') submissions.push(form);
          return { statusCode: explorerStatus, data: JSON.stringify(answerOf(asked)) };
        })
        .persist();
      // hardhat-verify has an undici of its own, whose types differ.
      setMockDispatcher(explorer as unknown as Parameters<typeof setMockDispatcher>[0]);
      settings = { RPC_URL: network.node.url, ETHERSCAN_API_KEY: EXPLORER_KEY };
    });
    after(() => setMockDispatcher(undefined));

    it('submit the source of every contract to the explorer', async () => {
      for (const command of printed) {
        const { code, stdout, stderr } = await askAsWritten(command, settings);
        expect(code, stdout + stderr).to.equal(0);
        const address = submissions.at(-1)?.get('contractaddress');
        expect(stdout).to.contain(`https://amoy.polygonscan.com/address/${address}#code`);
      }
      expect(submissions.map((form) => form.get('contractname')?.replace(/.*:/, ''))).to.deep.equal([
        'TitleEscrowFactory',
        'TitleEscrow',
        'TradeTrustTokenStandard',
        'TDocDeployer',
        'ERC1967Proxy',
      ]);
      for (const form of submissions) {
        expect(form.get('compilerversion')).to.equal('v0.8.22+commit.4fc1097e');
        const { settings } = JSON.parse(form.get('sourceCode') ?? '') as { settings: object };
        expect(settings).to.deep.include({ optimizer: { enabled: false, runs: 200 }, evmVersion: 'paris' });
      }
      const [logic, proxy] = submissions.slice(-2);
      const args = [logic?.get('contractaddress'), '0x8129fc1c'];
      // The spelling is Etherscan's.
      expect(`0x${proxy?.get('constructorArguements')}`).to.equal(
        AbiCoder.defaultAbiCoder().encode(['address', 'bytes'], args),
      );
    });

    it('name the wrong setting when the key is refused or the node does not answer', async () => {
      for (const [changes, code, remedy] of [
        [{ ETHERSCAN_API_KEY: OTHER_KEY }, '[NOT_CONFIGURED]', 'ETHERSCAN_API_KEY is refused'],
        [{ RPC_URL: 'http://127.0.0.1:9' }, '[RPC_UNREACHABLE]', 'Check RPC_URL'],
      ] as const) {
        const refused = await askAsWritten(printed.at(-1) ?? '', { ...settings, ...changes });
        expect(refused.code).to.equal(1);
        expect(refused.stderr).to.contain(code).and.to.contain(remedy);
      }
    });

    it('mask the key in the URL when the explorer fails', async () => {
      explorerStatus = 500;
      const failed = await askAsWritten(printed.at(-1) ?? '', settings);
      expect(failed.code).to.equal(1);
      expect(failed.stderr).to.contain('apikey=[secret]');
      expect(inspect(failed)).not.to.contain(EXPLORER_KEY);
    });
  });
});

/** Etherscan's answer about a contract on Amoy, whose source it accepts. */
function answerOf(asked: ReadonlyMap<string, string>): { status: string; message: string; result: unknown } {
  const refused = { status: '0', message: 'NOTOK' };
  if (asked.get('apikey') !== EXPLORER_KEY) return { ...refused, result: 'Invalid API Key' };
  if (asked.get('chainid') !== '80002') return { ...refused, result: 'Missing or unsupported chainid' };
  const results: Record<string, unknown> = {
    getsourcecode: [{ SourceCode: '' }],
    verifysourcecode: 'the id of the submission',
    checkverifystatus: 'Pass - Verified',
  };
  return { status: '1', message: 'OK', result: results[asked.get('action') ?? ''] };
}
