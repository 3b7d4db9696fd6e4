import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseEther, Transaction } from 'ethers';
import { hardhatCli } from '../../devnet/hardhat-node';
import { inheritedEnvironment } from '../../service/config/config';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { tenantOf } from '../../service/config/tenant';
import { TDocDeployer__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { eventually } from '../helpers/eventually';
import { startFakeGasStation } from '../helpers/chain/fake-gas-station';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { startStandInNetwork, type StandInNetwork } from '../helpers/chain/stand-in-network';

const SEND = 'eth_sendRawTransaction';

// Blocks come at intervals, as on Amoy: a run can be interrupted between sending and mining.
describe('npx hardhat deploy after an interrupted run', () => {
  let amoy: StandInNetwork;
  let proxy: RpcProxy;

  before(async () => {
    amoy = await startStandInNetwork('amoy');
  });

  beforeEach(async () => {
    await amoy.reset();
    await amoy.fund(parseEther('1'));
    await amoy.chain.send('evm_setAutomine', [false]);
    proxy = await startRpcProxy(amoy.node.url);
  });

  afterEach(() => proxy.close());

  after(() => amoy.stop());

  const mine = (milliseconds: number): Promise<unknown> =>
    amoy.chain.send('evm_setIntervalMining', [milliseconds]);
  const pending = (): Promise<number> => amoy.chain.getTransactionCount(amoy.wallet.address, 'pending');
  const deploy = (...args: string[]) => amoy.deploy(args, { RPC_URL: proxy.url });

  const sentRaw = (): unknown[] =>
    proxy.requests.filter(({ method }) => method === SEND).map(({ params }) => params[0]);
  const sentHash = () => Transaction.from(sentRaw()[0] as string).hash;

  /** The file of the registry's transaction. */
  async function stepFile(): Promise<string> {
    const { hash } = (await amoy.chain.getBlock(0)) ?? {};
    const folder = `deploy/deployments/chain-80002-${hash?.slice(2, 14)}`;
    return join(PROJECT_ROOT, folder, `registry-${tenantOf(amoy.envFile).key}.json`);
  }

  /** Starts the command in a process of its own. */
  function start({ envFile, wallet, node }: StandInNetwork, args: string[]): ChildProcess {
    const env = {
      ...inheritedEnvironment(),
      ENV_FILE: envFile,
      WALLET_PRIVATE_KEY: wallet.privateKey,
      RPC_URL: node === amoy.node ? proxy.url : node.url,
      GAS_STATION_URL: 'none',
    };
    const words = [hardhatCli(), 'deploy', '--network', 'amoy', ...args];
    return spawn(process.execPath, words, { cwd: PROJECT_ROOT, env, stdio: 'ignore' });
  }

  const finished = async (child: ChildProcess): Promise<unknown> =>
    ((await once(child, 'close')) as unknown[])[0];

  /** Kills a run as soon as `isDue`. */
  async function killed(
    network: StandInNetwork,
    args: string[],
    isDue: () => Promise<boolean>,
  ): Promise<void> {
    const child = start(network, args);
    const ended = finished(child);
    await eventually('the command has come far enough', async () => (await isDue()) || undefined);
    child.kill('SIGKILL');
    await ended;
  }

  /** Expects the next run to finish with the transaction of the interrupted one. */
  async function expectFinished(): Promise<void> {
    await mine(200);
    const { code, stdout, stderr } = await deploy();
    expect(code, stderr).to.equal(0);
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(1);
    const raw = sentRaw();
    expect(new Set(raw).size, 'the same transaction').to.equal(1);
    expect(stdout).to.contain(`/tx/${Transaction.from(raw[0] as string).hash}`);
    expect(stdout).not.to.contain('cost ');
    const registry = TradeTrustTokenStandard__factory.connect(amoy.registry(), amoy.chain);
    expect(await registry.titleEscrowFactory()).to.equal(amoy.published.titleEscrowFactory);
  }

  it('finds the unmined transaction of a killed run', async () => {
    await killed(amoy, [], async () => (await pending()) === 1);
    await expectFinished();
  });

  it('finds the transactions of a run that was killed while it installed the infrastructure', async () => {
    const bare = await startStandInNetwork('amoy', { isPublished: false });
    try {
      await bare.fund(parseEther('1'));
      await bare.chain.send('evm_setAutomine', [false]);
      await bare.chain.send('evm_setIntervalMining', [200]);
      const sent = (): Promise<number> => bare.chain.getTransactionCount(bare.wallet.address, 'pending');
      for (const count of [1, 3])
        await killed(bare, ['--with-infrastructure'], async () => (await sent()) >= count);
      const { code, stdout, stderr } = await bare.deploy();
      expect(code, stderr).to.equal(0);
      expect(await bare.chain.getTransactionCount(bare.wallet.address)).to.equal(6);
      const deployer = /deployer +(0x\w{40})/.exec(stdout)?.[1] ?? '';
      const contract = TDocDeployer__factory.connect(deployer, bare.chain);
      expect(await contract.queryFilter(contract.filters.Deployment)).to.have.length(1);
    } finally {
      await bare.stop();
    }
  });

  it('makes one more registry when an interrupted --new is repeated', async () => {
    await mine(200);
    expect((await deploy()).code).to.equal(0);
    const first = amoy.registry();
    proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
    expect((await deploy('--new')).code).to.equal(1);
    expect(amoy.registry()).to.equal(first);
    proxy.answer(THROUGH);
    const { code, stderr } = await deploy('--new');
    expect(code, stderr).to.equal(0);
    expect(amoy.registry()).not.to.equal(first);
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(2);
  });

  it('finishes an interrupted registry of another name, and lets --new make the wanted one', async () => {
    proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
    expect((await deploy('--token-name', 'First')).code).to.equal(1);
    proxy.answer(THROUGH);
    await mine(200);
    const wanted = ['--new', '--token-name', 'Second'];
    const refused = await deploy(...wanted);
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.contain('REGISTRY_DIFFERS').and.to.contain('is "First"');
    const { code, stdout, stderr } = await deploy(...wanted);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.contain('"Second"');
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(2);
  });

  it('sends the transaction again when the node drops it while the command waits', async () => {
    const running = deploy();
    await eventually('the transaction is sent', async () => (await pending()) === 1);
    await amoy.chain.send('hardhat_dropTransaction', [sentHash()]);
    await eventually('the transaction is sent again', async () => (await pending()) === 1);
    await mine(200);
    const { code, stderr } = await running;
    expect(code, stderr).to.equal(0);
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(1);
  });

  it('stops waiting when another transaction has used the nonce, and names the file to delete', async () => {
    const running = deploy();
    await eventually('the transaction is sent', async () => (await pending()) === 1);
    await amoy.chain.send('hardhat_dropTransaction', [sentHash()]);
    const wallet = amoy.wallet.connect(amoy.chain);
    await wallet.sendTransaction({ to: amoy.wallet.address, nonce: 0 });
    await mine(200);
    const { code, stderr } = await running;
    expect(code).to.equal(1);
    expect(stderr)
      .to.contain('DEPLOYMENT_FAILED')
      .and.to.contain(`then delete ${await stepFile()}`);
  });

  for (const content of ['', '{"hashes":'])
    it(`sends nothing while the file of the transaction is damaged: '${content}'`, async () => {
      proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
      expect((await deploy()).code).to.equal(1);
      proxy.answer(THROUGH);
      writeFileSync(await stepFile(), content);
      const { code, stderr } = await deploy();
      expect(code).to.equal(1);
      expect(stderr)
        .to.contain('DEPLOYMENT_FAILED')
        .and.to.contain(`${await stepFile()} is damaged`);
      expect(await pending()).to.equal(0);
    });

  it('makes one registry when two commands run at once', async () => {
    await mine(200);
    const runs = await Promise.all([1, 2].map(() => finished(start(amoy, []))));
    expect(runs).to.deep.equal([0, 0]);
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(1);
  });

  it('goes on when the answer of the node is lost', async () => {
    proxy.answer((method) => (method === SEND ? 'drop answer' : 'none'));
    await mine(200);
    const { code, stderr } = await deploy();
    expect(code, stderr).to.equal(0);
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(1);
    expect(amoy.registry()).to.match(/^0x/);
  });

  it('sends the same transaction again when the node never received it', async () => {
    proxy.answer((method) => (method === SEND ? 'drop request' : 'none'));
    expect((await deploy()).code).to.equal(1);
    expect(await pending()).to.equal(0);
    proxy.answer(THROUGH);
    await expectFinished();
  });

  it('sends no other transaction until the node accepts the refused one', async () => {
    const refusal = { error: { code: -32000, message: 'the mempool is full' } };
    proxy.answer((method) => (method === SEND ? refusal : 'none'));
    for (const attempt of [1, 2]) {
      const { code, stderr } = await deploy();
      expect(code, `attempt ${attempt}`).to.equal(1);
      expect(stderr).to.contain('DEPLOYMENT_FAILED').and.to.contain('the mempool is full');
    }
    expect(await pending()).to.equal(0);
    proxy.answer(THROUGH);
    await expectFinished();
  });

  it('prints and offers the current fees after the node refused lower ones', async () => {
    const block = await amoy.chain.getBlock('latest');
    const station = await startFakeGasStation();
    const offer = (maxFee: number) => {
      station.tell({ maxFee, maxPriorityFee: maxFee });
      return amoy.deploy([], { RPC_URL: proxy.url, GAS_STATION_URL: station.url });
    };
    await amoy.chain.send('evm_setAutomine', [true]);
    expect(Number(block?.baseFeePerGas)).to.be.greaterThan(1);
    const { code, stderr } = await offer(0.000000001);
    expect(code).to.equal(1);
    expect(stderr).to.contain('DEPLOYMENT_FAILED').and.to.contain('too low');
    const again = await offer(50);
    await station.close();
    expect(again.code, again.stderr).to.equal(0);
    expect(again.stdout).to.contain('at up to 50 gwei');
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(1);
    expect(amoy.registry()).to.match(/^0x/);
  });
});
