import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseEther } from 'ethers';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { tenantOf } from '../../service/config/tenant';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { startRpcProxy } from '../helpers/chain/rpc-proxy';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

const AMOY = 80002;
const DEPLOYMENTS = join(PROJECT_ROOT, 'deploy/deployments');

/**
 * Removes the file of the tenant's registry, as on another machine or in a fresh clone. Only that of this
 * tenant: other tests may be deploying on the same chain id. Returns whether there was one.
 */
function dropRegistryFile(envFile: string): boolean {
  const name = `registry-${tenantOf(envFile).key}.json`;
  const files = readdirSync(DEPLOYMENTS)
    .filter((chain) => chain.startsWith(`chain-${AMOY}-`))
    .map((chain) => join(DEPLOYMENTS, chain, name))
    .filter((file) => existsSync(file));
  for (const file of files) rmSync(file);
  return files.length > 0;
}

// A local node with Amoy's chain id and the v5 contracts at the addresses where they are published.
describe('npx hardhat deploy on a network with a published deployer', () => {
  let amoy: StandInNetwork;

  before(async () => {
    amoy = await startStandInNetwork('amoy');
    await amoy.fund(parseEther('1'));
  });

  after(() => amoy.stop());

  async function deploy(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await amoy.deploy(args);
    expect(code, stderr).to.equal(0);
    return stdout;
  }
  const transactions = (): Promise<number> => amoy.chain.getTransactionCount(amoy.wallet.address);

  it('deploys the registry through the published deployer in one transaction', async () => {
    const { chain, published, wallet } = amoy;
    const block = await chain.getBlockNumber();
    const output = await deploy();
    expect(output).to.match(new RegExp(`deployer +${published.deployer} +published`));
    expect(await transactions()).to.equal(1);
    expect(await chain.getBlock(block + 1).then((mined) => mined?.transactions.length)).to.equal(1);
    const registry = TradeTrustTokenStandard__factory.connect(amoy.registry(), chain);
    expect(await registry.titleEscrowFactory()).to.equal(published.titleEscrowFactory);
    expect(await registry.hasRole(await registry.MINTER_ROLE(), wallet.address)).to.equal(true);
  });

  it('sends nothing the second time', async () => {
    const before = amoy.registry();
    expect(await deploy()).to.contain('already deployed');
    expect(amoy.registry()).to.equal(before);
    expect(await transactions()).to.equal(1);
  });

  it('keeps the registry of TOKEN_REGISTRY_ADDRESS when the file of its transaction is lost', async () => {
    const before = amoy.registry();
    expect(dropRegistryFile(amoy.envFile)).to.equal(true);
    expect(await deploy()).to.contain('already deployed');
    expect(amoy.registry()).to.equal(before);
    expect(await transactions()).to.equal(1);
  });

  it('fails, and sends nothing, when TOKEN_REGISTRY_ADDRESS cannot be read', async () => {
    dropRegistryFile(amoy.envFile);
    const proxy = await startRpcProxy(amoy.node.url, (method, [call]) => {
      const { to = '' } = { ...(call as { to?: string }) };
      const isAsked = method === 'eth_call' && to.toLowerCase() === amoy.registry().toLowerCase();
      return isAsked ? { error: { code: -32000, message: 'try later' } } : 'none';
    });
    const { code, stderr } = await amoy.deploy([], { RPC_URL: proxy.url });
    await proxy.close();
    expect(code).to.equal(1);
    expect(stderr).to.contain('DEPLOYMENT_INCONSISTENT');
    expect(await transactions()).to.equal(1);
  });

  it('fails, and sends nothing, when the registry has no code', async () => {
    await deploy('--new');
    await amoy.chain.send('hardhat_setCode', [amoy.registry(), '0x']);
    const { code, stderr } = await amoy.deploy();
    expect(code).to.equal(1);
    expect(stderr).to.contain('DEPLOYMENT_INCONSISTENT').and.to.contain('--new');
    expect(await transactions()).to.equal(2);
  });
});
