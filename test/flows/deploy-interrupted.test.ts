import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { parseEther, Transaction } from 'ethers';
import { hardhatCli } from '../../devnet/hardhat-node';
import { inheritedEnvironment } from '../../service/config/config';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
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
  const deploy = () => amoy.deploy([], { RPC_URL: proxy.url });

  /** Expects the next run to finish with the transaction of the interrupted one. */
  async function expectFinished(): Promise<void> {
    await mine(200);
    const { code, stdout, stderr } = await deploy();
    expect(code, stderr).to.equal(0);
    expect(await amoy.chain.getTransactionCount(amoy.wallet.address)).to.equal(1);
    const raw = proxy.requests.filter(({ method }) => method === SEND).map(({ params }) => params[0]);
    expect(new Set(raw).size, 'the same transaction').to.equal(1);
    expect(stdout).to.contain(`/tx/${Transaction.from(raw[0] as string).hash}`);
    expect(stdout).not.to.contain('cost ');
    const registry = TradeTrustTokenStandard__factory.connect(amoy.registry(), amoy.chain);
    expect(await registry.titleEscrowFactory()).to.equal(amoy.published.titleEscrowFactory);
  }

  it('finds the unmined transaction of a killed run', async () => {
    const env = {
      ...inheritedEnvironment(),
      ENV_FILE: amoy.envFile,
      WALLET_PRIVATE_KEY: amoy.wallet.privateKey,
      RPC_URL: proxy.url,
      GAS_STATION_URL: 'none',
    };
    const args = [hardhatCli(), 'deploy', '--network', 'amoy'];
    const child = spawn(process.execPath, args, { cwd: PROJECT_ROOT, env, stdio: 'ignore' });
    const ended = once(child, 'close');
    await eventually('the transaction is sent', async () => (await pending()) === 1 || undefined);
    child.kill('SIGKILL');
    await ended;
    await expectFinished();
  });

  it('finds the transaction when the answer of the node was lost', async () => {
    proxy.answer((method) => (method === SEND ? 'drop answer' : 'none'));
    expect((await deploy()).code).to.equal(1);
    expect(await pending()).to.equal(1);
    proxy.answer(THROUGH);
    await expectFinished();
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
