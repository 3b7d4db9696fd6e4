import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type JsonRpcProvider, Wallet } from 'ethers';
import { type HardhatNode, nodeClient } from '../../devnet/hardhat-node';
import { readSettings } from '../../service/config/config';
import { TDocDeployer__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { askHardhatInProcess } from '../helpers/processes/hardhat-in-process';
import { codeBlocks, readDocument } from '../helpers/pages/markdown';
import { startNode } from '../helpers/chain/node';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { stopLater } from '../helpers/resources';
import { askAsWritten } from '../helpers/pages/page-commands';
import { temporaryFolder } from '../helpers/temporary-folder';
import { DEPLOYER, DEPLOYER_KEY } from '../helpers/chain/local-setup';

/** The exit code and the output of a command. */
interface Outcome {
  code: number | null;
  output: string;
}

describe('npx hardhat deploy', () => {
  const folder = temporaryFolder();
  let tests = 0;
  let envFile: string;
  let node: HardhatNode;
  let chain: JsonRpcProvider;

  before(async () => {
    node = await startNode();
    stopLater(`node on ${node.url}`, () => node.stop());
    chain = nodeClient(node.url);
    stopLater('its client', () => chain.destroy());
  });
  beforeEach(() => {
    // Each test is another tenant.
    envFile = join(folder.path, `${tests++}.env`);
    writeFileSync(envFile, '# mine\nNET=31337\n');
  });

  async function run(args: string[], settings: Record<string, string> = {}): Promise<Outcome> {
    const all = { ENV_FILE: envFile, RPC_URL: node.url, WALLET_PRIVATE_KEY: DEPLOYER_KEY, ...settings };
    const { code, stdout, stderr } = await askHardhatInProcess(['deploy', ...args], all);
    return { code, output: stdout + stderr };
  }

  const written = () => readSettings({ ENV_FILE: envFile }).settings.TOKEN_REGISTRY_ADDRESS;

  /** Deploys on localhost and returns the address that the env file now holds. */
  async function deploy(...args: string[]): Promise<string> {
    const { code, output } = await run(['--network', 'localhost', ...args]);
    expect(code, output).to.equal(0);
    const address = written() ?? '';
    // No service has followed any registry here.
    expect(output).to.contain(address).and.not.to.contain('previous registry');
    return address;
  }

  const registryAt = (address: string) => TradeTrustTokenStandard__factory.connect(address, chain);

  /** Expects the registry to exist, and to mint through its factory. */
  async function expectUsable(address: string): Promise<void> {
    const registry = registryAt(address);
    expect(await registry.hasRole(await registry.MINTER_ROLE(), DEPLOYER)).to.equal(true);
    const signer = await chain.getSigner(DEPLOYER);
    await (await registry.connect(signer).mint(DEPLOYER, DEPLOYER, 7, '0x')).wait();
  }

  const snapshot = (): Promise<unknown> => chain.send('evm_snapshot', []);
  const revert = (id: unknown): Promise<unknown> => chain.send('evm_revert', [id]);

  /** Starts the chain again without any blocks. */
  const reset = (): Promise<unknown> => chain.send('hardhat_reset', []);

  /** Starts each test with the infrastructure and a registry that another tenant deployed. */
  function keepInfrastructure(): void {
    let infrastructure: unknown;

    before(async () => {
      await reset();
      await run(['--network', 'localhost'], { ENV_FILE: join(folder.path, 'first.env') });
      infrastructure = await snapshot();
    });
    beforeEach(async () => {
      await revert(infrastructure);
      infrastructure = await snapshot();
    });
  }

  describe('on a local chain', () => {
    beforeEach(reset);

    it('creates a registry that can mint, and writes its address into an env file of mode 600', async () => {
      const args = ['--network', 'localhost', '--token-name', 'Bills', '--token-symbol', 'BL'];
      const { code, output } = await run(args);
      expect(code, output).to.equal(0);
      const address = written() ?? '';
      expect(output).to.contain(address);
      await expectUsable(address);
      expect(await registryAt(address).name()).to.equal('Bills');
      expect(await registryAt(address).symbol()).to.equal('BL');
      expect(readFileSync(envFile, 'utf8')).to.equal(
        `# mine\nNET=31337\nTOKEN_REGISTRY_ADDRESS=${address}\n`,
      );
      expect(statSync(envFile).mode & 0o777).to.equal(0o600);
    });

    it('deploys with the first account of the node without a wallet and says what is missing', async () => {
      const { code, output } = await run(['--network', 'localhost'], { WALLET_PRIVATE_KEY: '' });
      expect(code).to.equal(0);
      expect(output).to.contain('The service needs WALLET_PRIVATE_KEY').and.to.contain(DEPLOYER);
    });
  });

  describe('on a local chain with the infrastructure', () => {
    keepInfrastructure();

    it('changes nothing on a second run, and uses the newest registry after --new', async () => {
      const address = await deploy();
      const block = await chain.getBlockNumber();
      const { output } = await run(['--network', 'localhost']);
      expect(output).to.match(new RegExp(`token registry +${address} +already deployed`));
      expect(output).to.match(/deployer +0x\w{40} +already there/);
      expect(await chain.getBlockNumber()).to.equal(block);
      const newest = [await deploy('--new'), await deploy('--new')];
      expect(new Set([address, ...newest]).size).to.equal(3);
      expect(await deploy()).to.equal(newest[1]);
    });

    it('refuses another name for the existing registry, which stays in use', async () => {
      const address = await deploy('--token-name', 'Bills');
      const { code, output } = await run(['--network', 'localhost', '--token-name', 'Other']);
      expect(code).to.equal(1);
      expect(output).to.contain('REGISTRY_DIFFERS').and.to.contain(address).and.to.contain('--new');
      expect(await deploy('--token-name', 'Bills')).to.equal(address);
    });

    it('says if NET is another chain, the address overridden, and the wallet no minter', async () => {
      writeFileSync(envFile, '');
      const first = await run(['--network', 'localhost'], { TOKEN_REGISTRY_ADDRESS: `0x${'1'.repeat(40)}` });
      expect(first.output)
        .to.contain('NET is amoy (80002), but this registry is on chain 31337: set NET=31337 in')
        .and.to.contain('warning: the environment variable TOKEN_REGISTRY_ADDRESS is set and wins');
      const stranger = Wallet.createRandom();
      await chain.send('hardhat_setBalance', [stranger.address, '0xde0b6b3a7640000']);
      const { code, output } = await run(['--network', 'localhost'], {
        WALLET_PRIVATE_KEY: stranger.privateKey,
      });
      expect(code).to.equal(0);
      expect(output).to.contain(`the wallet ${stranger.address} has no minter role`);
    });
  });

  describe('on a chain that lost contracts', () => {
    it('deploys a usable registry after hardhat_reset', async () => {
      await deploy();
      await reset();
      await expectUsable(await deploy());
    });

    it('deploys elsewhere when other contracts of the wallet took the addresses after a revert', async () => {
      await reset();
      const start = await snapshot();
      const before = await deploy();
      await revert(start);
      const signer = await chain.getSigner(DEPLOYER);
      for (let n = 0; n < 6; n += 1) {
        await (await new TDocDeployer__factory(signer).deploy()).waitForDeployment();
      }
      const after = await deploy();
      expect(after).not.to.equal(before);
      await expectUsable(after);
    });

    it('keeps the registry on a node that has pruned block 0 and its transactions', async () => {
      await reset();
      await using pruned = await startRpcProxy(node.url);
      const throughProxy = () => run(['--network', 'localhost'], { RPC_URL: pruned.url });
      await throughProxy();
      const before = written();
      const PRUNED = { error: { code: 4444, message: 'pruned history unavailable' } };
      pruned.answer((method, [block]) => {
        if (method === 'eth_getBlockByNumber' && block === '0x0') return PRUNED;
        return method === 'eth_getTransactionByHash' ? { result: null } : 'none';
      });
      const { code, output } = await throughProxy();
      expect(code, output).to.equal(0);
      expect(output).to.match(new RegExp(`token registry +${before} +already deployed`));
      expect(written()).to.equal(before);
    });

    describe('but not the infrastructure', () => {
      keepInfrastructure();

      it('reports a usable registry after a revert of --new, and keeps the infrastructure', async () => {
        await deploy();
        const withOne = await snapshot();
        await deploy('--new');
        await revert(withOne);
        const first = await deploy();
        await expectUsable(first);
        const { output } = await run(['--network', 'localhost', '--new']);
        expect(output)
          .to.match(/deployer +0x\w{40} +already there/)
          .and.to.match(/token registry .* deployed/);
      });

      it('deploys elsewhere when another tenant’s registry took the address after a revert', async () => {
        const start = await snapshot();
        const gone = await deploy('--token-name', 'Mine');
        await revert(start);
        const somebody = { ENV_FILE: join(folder.path, 'somebody.env') };
        await run(['--network', 'localhost', '--token-name', 'Theirs'], somebody);
        expect(await registryAt(gone).name()).to.equal('Theirs');
        const mine = await deploy('--token-name', 'Mine');
        expect(mine).not.to.equal(gone);
        expect(await registryAt(mine).name()).to.equal('Mine');
      });
    });
  });

  it('deploys on NET without --network', async () => {
    const { code, output } = await run([]);
    expect(code, output).to.equal(0);
    await expectUsable(written() ?? '');
    expect(await deploy()).to.equal(written());
  });

  it('refuses a node of another chain than 1337 for the commands of docs/networks.md', async () => {
    const page = codeBlocks(readDocument('docs/networks.md').section('A local chain'), 'sh');
    const [startOnPage, deployOnPage = ''] = page.join().split('\n');
    expect(startOnPage).to.equal('LOCAL_CHAIN_ID=1337 npx hardhat node');
    const { code, stderr } = await askAsWritten(`${deployOnPage} --new`, {
      ENV_FILE: envFile,
      RPC_URL: node.url,
      WALLET_PRIVATE_KEY: DEPLOYER_KEY,
    });
    expect(code).to.equal(1);
    expect(stderr)
      .to.contain('CHAIN_ID_MISMATCH')
      .and.to.contain('31337')
      .and.to.match(/\b1337\b/);
  });

  const hidden = 'hidden-word';
  const REFUSED: Record<string, [network: string, settings: Record<string, string>, ...says: string[]]> = {
    'a node that does not answer': [
      'localhost',
      { RPC_URL: `http://user:${hidden}@127.0.0.1:9/` },
      'RPC_UNREACHABLE',
      'http://127.0.0.1:9 ',
      'npx hardhat node',
    ],
    'a WebSocket URL': ['localhost', { RPC_URL: 'ws://127.0.0.1:9' }, 'RPC_URL_NOT_HTTP'],
    'an invalid wallet key': [
      'localhost',
      { WALLET_PRIVATE_KEY: hidden },
      'CONFIGURATION_INVALID',
      'WALLET_PRIVATE_KEY',
    ],
    'a public network without its provider key': [
      'sepolia',
      { WALLET_PRIVATE_KEY: Wallet.createRandom().privateKey, RPC_URL: '' },
      'PROVIDER_API_KEY is needed to reach sepolia',
    ],
    'a public network without a wallet': [
      'amoy',
      { WALLET_PRIVATE_KEY: '' },
      'NOT_CONFIGURED',
      'WALLET_PRIVATE_KEY',
    ],
    'a public network with a published wallet key': ['amoy', {}, 'WALLET_KEY_PUBLISHED'],
  };
  for (const [what, [network, settings, ...says]] of Object.entries(REFUSED))
    it(`refuses ${what}, without a stack or a secret`, async () => {
      const { code, output } = await run(['--network', network], settings);
      expect(code).to.equal(1);
      for (const text of says) expect(output).to.contain(text);
      expect(output)
        .not.to.match(/\n +at /)
        .and.not.to.contain(hidden);
      expect(written()).to.equal(undefined);
    });
});
