import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { JsonRpcProvider, Wallet } from 'ethers';
import { startHardhatNode, type HardhatNode } from '../../deploy/devnet/hardhat-node';
import { publishedContractsOf, type PublishedContracts } from '../../deploy/registry/published-contracts';
import { readSettings } from '../../service/config';
import { PROJECT_ROOT } from '../../service/project-root';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { hardhat } from '../helpers/hardhat-command';
import { own } from '../helpers/owned';
import { publishContracts } from '../helpers/published-contracts';
import { temporaryFolder } from '../helpers/temporary-folder';

const AMOY = 80002;
const JOURNALS = join(PROJECT_ROOT, 'deploy/deployments');

/** What the package says is published on Amoy. */
const published = publishedContractsOf(AMOY) as PublishedContracts;

// A local node with Amoy's chain id and the v5 contracts at the addresses where they are published.
describe('npx hardhat deploy on a network with a published deployer', () => {
  const folder = temporaryFolder();
  const envFile = join(folder.path, 'amoy.env');
  const wallet = Wallet.createRandom();
  let node: HardhatNode;
  let chain: JsonRpcProvider;
  let disown: () => unknown;

  before(async () => {
    node = await startHardhatNode({ port: 0, chainId: AMOY });
    disown = own(`node on ${node.url}`);
    chain = new JsonRpcProvider(node.url, AMOY, { cacheTimeout: -1, staticNetwork: true });
    await publishContracts(chain, published);
    await chain.send('hardhat_setBalance', [wallet.address, '0xde0b6b3a7640000']);
  });

  after(async () => {
    chain.destroy();
    await node.stop();
    disown();
    folder.remove();
  });

  const settings = { ENV_FILE: envFile, WALLET_PRIVATE_KEY: wallet.privateKey };
  const deploy = (...args: string[]): Promise<string> =>
    hardhat(['deploy', '--network', 'amoy', ...args], { ...settings, RPC_URL: node.url });
  const address = (): string => readSettings({ ENV_FILE: envFile }).settings.TOKEN_REGISTRY_ADDRESS ?? '';

  it('sends one transaction: the registry, through the published deployer', async () => {
    const block = await chain.getBlockNumber();
    const output = await deploy();
    expect(output).to.match(new RegExp(`deployer +${published.deployer} +published`));
    expect(await chain.getTransactionCount(wallet.address)).to.equal(1);
    expect(await chain.getBlock(block + 1).then((mined) => mined?.transactions.length)).to.equal(1);
    const registry = TradeTrustTokenStandard__factory.connect(address(), chain);
    expect(await registry.titleEscrowFactory()).to.equal(published.titleEscrowFactory);
    expect(await registry.hasRole(await registry.MINTER_ROLE(), wallet.address)).to.equal(true);
  });

  it('sends nothing the second time', async () => {
    const before = address();
    expect(await deploy()).to.contain('already deployed');
    expect(address()).to.equal(before);
    expect(await chain.getTransactionCount(wallet.address)).to.equal(1);
  });

  it('keeps the registry of TOKEN_REGISTRY_ADDRESS when the journal is lost: a second one would cost money', async () => {
    const before = address();
    for (const name of readdirSync(JOURNALS).filter((journal) => journal.startsWith(`chain-${AMOY}-`))) {
      if (name.includes('-amoy-')) rmSync(join(JOURNALS, name), { recursive: true });
    }
    expect(await deploy()).to.contain('already deployed');
    expect(address()).to.equal(before);
    expect(await chain.getTransactionCount(wallet.address)).to.equal(1);
  });

  it('does not deploy again when the registry cannot be found: it fails', async () => {
    await deploy('--new');
    await chain.send('hardhat_setCode', [address(), '0x']);
    const failure = await deploy().then(
      () => 'succeeded',
      (error: { stderr: string }) => error.stderr,
    );
    expect(failure).to.contain('DEPLOYMENT_INCONSISTENT').and.to.contain('--new');
    expect(await chain.getTransactionCount(wallet.address)).to.equal(2);
  });
});
